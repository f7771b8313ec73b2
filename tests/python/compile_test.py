"""torch.compile(fullgraph=True), forward and backward: the same numbers as without.

Every router by the backend that runs the traced graph as it is; some by inductor, which needs Python's headers and g++.
"""
import unittest

import loss_cases
import support
import torch

import sparsight
from sparsight import losses

B, S, D, F, E = 2, 6, 8, 12, 4


class Compiled(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.compiler.reset()

    def check(self, backend, images=(B,), dynamic=None, **options):
        layer = sparsight.MoEMLP(D, F, E, **options)
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        seed = None if layer.router.soft else torch.tensor(3)

        def step(x):
            y, routing = layer(x, return_routing=True, seed=seed)
            return y, routing.loss

        compiled = torch.compile(step, fullgraph=True, backend=backend, dynamic=dynamic)
        for count in images:
            x = torch.randn(count, S, D, requires_grad=True)
            results = []
            for run in (step, compiled):
                y, loss = run(x)
                gradients = torch.autograd.grad(y.square().sum() + loss, [x, *layer.parameters()], allow_unused=True)
                results.append([y, loss, *[g for g in gradients if g is not None]])
            for a, b in zip(*results):
                torch.testing.assert_close(a, b)

    def test_every_router(self):
        for name in sorted(sparsight.routers()):
            with self.subTest(name):
                torch.compiler.reset()
                self.check("aot_eager", router=name)

    def test_seeds_that_change_compile_once_more(self):
        layer, x, compiled_for = sparsight.MoEMLP(D, F, E), torch.randn(B, S, D), []

        def backend(graph, inputs):
            compiled_for.append(inputs)
            return graph.forward

        compiled = torch.compile(layer, fullgraph=True, backend=backend)
        for seed in range(3, 20):
            torch.testing.assert_close(compiled(x, seed=seed), layer(x, seed=seed))
        self.assertLessEqual(len(compiled_for), 2)  # for the first seed, then for any

    def test_capacity_and_skipped_choices(self):
        self.check("aot_eager", router="gshard_top2", capacity=0.5)

    def test_autocast_and_half_types(self):
        layer, x = sparsight.MoEMLP(D, F, E, router="soft_moe"), torch.randn(B, S, D)
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(compiled(x), layer(x))
        logits = torch.randn(B * S, E, dtype=torch.bfloat16, requires_grad=True)
        expert = torch.randint(E, (B * S, 1))
        loss = torch.compile(sparsight.losses.switch, fullgraph=True, backend="aot_eager")(logits, expert)
        self.assertEqual((loss.dtype, torch.autograd.grad(loss, logits)[0].dtype), (torch.float32, torch.bfloat16))

    def test_sizes_may_change(self):
        self.check("aot_eager", images=(2, 3, 5), dynamic=True)

    def test_no_images(self):
        for router in ("softmax_topk", "soft_moe"):
            for prefix in (0, 2):
                torch.compiler.reset()
                self.check("aot_eager", images=(0,), router=router, prefix=prefix)

    def test_export_with_any_number_of_images(self):
        for router in ("softmax_topk", "expert_choice", "soft_moe"):  # per token, of unknown number, mixed
            layer = sparsight.MoEMLP(D, F, E, router=router).eval()
            exported = torch.export.export(layer, (torch.randn(B, S, D),), dynamic_shapes={"x": {0: torch.export.Dim("images")}})
            for count in (1, 3, 5):
                x = torch.randn(count, S, D)
                with self.subTest(router, images=count):
                    torch.testing.assert_close(exported.module()(x), layer(x))

    def test_evaluation_and_drawn_seeds(self):
        layer = sparsight.MoEMLP(D, F, E)
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        x = torch.randn(B, S, D)
        self.assertEqual(compiled(x).shape, x.shape)  # training: the seed is drawn inside
        layer.eval()
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), layer(x))

    def test_every_loss(self):
        for name, each in loss_cases.cases(torch.float32).items():
            for run, inputs in each:
                with self.subTest(name):
                    torch.compiler.reset()
                    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
                    results = [[y, *torch.autograd.grad(y, inputs)] for y in (run(*inputs), compiled(*inputs))]
                    for a, b in zip(*results):
                        torch.testing.assert_close(a, b)

    def test_losses_of_sizes_that_change(self):
        loss = lambda logits, expert: losses.switch(logits, expert, counts="first") + losses.router_z(logits)
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
        for tokens, experts in ((6, 4), (7, 5), (9, 3)):
            inputs = torch.randn(tokens, experts), torch.randint(experts, (tokens, 2))
            torch.testing.assert_close(compiled(*inputs), loss(*inputs))

    @unittest.skipUnless(support.has_inductor(), "no Python.h for inductor")
    def test_inductor(self):
        self.check("inductor", router="softmax_topk")
        self.check("inductor", router="expert_choice")


if __name__ == "__main__":
    unittest.main()
