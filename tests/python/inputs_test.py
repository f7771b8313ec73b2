"""Inputs of routers and layers other than tokens: masks, priorities, seeds, samples, routings to learn from; and devices."""
import unittest

import support  # noqa: F401
import torch

import sparsight
from sparsight import losses

B, S, D, F, E = 2, 6, 8, 12, 4


def images():
    return torch.randn(B, S, D)


class Inputs(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_what_is_given_for_each_token_has_the_shape_of_the_tokens(self):
        modules = [sparsight.Router("hash", D, E), sparsight.Router("soft_moe", D, E), sparsight.MoEMLP(D, F, E)]
        for name, dtype in (("valid", torch.bool), ("token_id", torch.int64), ("priority", torch.float32)):
            for module in modules:
                for shape in ((S, B), (B * S,), (B, S, 1), (1, S)):
                    with self.subTest(name, shape=shape), self.assertRaisesRegex(
                            RuntimeError, rf"^{name} has the shape .*, expected \[2, 6\]: that of x without D$"):
                        module(images(), **{name: torch.ones(shape, dtype=dtype)})
                module(images(), **{name: torch.ones(B, S, dtype=dtype)})
                module(images().view(-1, D), **{name: torch.ones(B * S, dtype=dtype)})

    def test_priority_decides_who_gets_a_place(self):
        layer = sparsight.MoEMLP(D, F, E, 1, capacity={"factor": 1.0, "priority": "given"}, seed=1)
        x, priority = images().requires_grad_(), torch.rand(B, S)
        y, routing = layer(x, return_routing=True, priority=priority, seed=5)
        seats, kept = [3] * E, [False] * (B * S)  # 12 tokens, 4 experts
        for token in priority.view(-1).argsort(descending=True).tolist():
            expert = routing.expert[token]
            kept[token] = seats[expert] > 0
            seats[expert] -= 1
        self.assertIn(False, kept)
        self.assertEqual(routing.kept.tolist(), kept)
        self.assertEqual((y != 0).any(-1).view(-1).tolist(), kept)
        (y.square().sum() + routing.loss).backward()
        self.assertTrue(x.grad.isfinite().all())

    def test_priority_is_missed_only_where_the_capacity_goes_by_it(self):
        given = {"factor": 1.0, "eval_factor": 0.0, "priority": "given"}
        layer = sparsight.MoEMLP(D, F, E, capacity=given)
        with self.assertRaisesRegex(ValueError, "needs a priority for each token, got none.*priority= in Python"):
            layer(images())
        layer.eval()(images())
        sparsight.MoEMLP(D, F, E, router="expert_choice", capacity=given)(images())

    def test_shares_of_any_type(self):
        router = sparsight.Router("softmax_topk", D, E, losses={"separation": 1.0, "superclass": 1.0}).eval()
        x, target = images(), torch.eye(E)[[3, 0]]
        expected = router(x, target=target).losses
        for dtype in (torch.bool, torch.uint8, torch.int64, torch.float64):
            for name, value in router(x, target=target.to(dtype)).losses.items():
                torch.testing.assert_close(value, expected[name])

    def test_seeds(self):
        layer = sparsight.MoEMLP(D, F, E)
        for seed, kind, message in ((1.5, TypeError, "^seed must be an integer, got 1.5$"),
                                    (True, TypeError, "^seed must be an integer, got True$"),
                                    (2**63, ValueError, "^seed must fit in 64 bits")):
            with self.assertRaisesRegex(kind, message):
                layer(images(), seed=seed)
        x = images()
        self.assertTrue(torch.equal(layer(x, seed=-1), layer(x, seed=torch.tensor(-1))))

    def test_names_of_draws(self):
        router = sparsight.Router("hierarchical", D, E)
        noise = torch.randn(B * S, 2)
        for name in ("noise,group_noise", "", ",", 3):
            with self.assertRaisesRegex(ValueError, f'^unknown samples "{name}": the router hierarchical takes noise, group_noise$'):
                router(images(), samples={name: noise})

    def test_routings_of_another_router(self):
        for name, other in (("sigmoid_bias", sparsight.Router("sigmoid_bias", D, E + 1, k=1)),
                            ("balanced_hierarchical", sparsight.Router("balanced_batchwise", D, E)),
                            ("balanced_batchwise", sparsight.Router("balanced_hierarchical", D, E)),
                            ("balanced_hierarchical", sparsight.Router("balanced_hierarchical", D, E, groups=4, k=1))):
            router = sparsight.Router(name, D, E)
            before = {key: value.clone() for key, value in router.state_dict().items()}
            with self.assertRaisesRegex(RuntimeError, "^post_step_update takes routings of this router: experts and groups are "):
                router.post_step_update(router(images()), other(images()))
            for key, value in router.state_dict().items():
                self.assertTrue(torch.equal(value, before[key]))


class Devices(unittest.TestCase):
    def refuses(self, operator, call):
        with self.subTest(operator), self.assertRaisesRegex(
                RuntimeError, f"sparsight::{operator} needs its tensors on one device, got cpu and meta"):
            call()

    def test_no_answer_comes_from_a_mixture(self):
        x = images()
        with torch.device("meta"):
            layers = {name: sparsight.MoEMLP(D, F, E, router=name) for name in ("softmax_topk", "soft_moe", "hash")}
        for operator, name in (("route", "softmax_topk"), ("mix", "soft_moe"), ("moe_mlp_forward", "hash")):
            self.refuses(operator, lambda: layers[name](x))
        here = sparsight.MoEMLP(D, F, E)
        self.refuses("route", lambda: here(x.to("meta")))
        self.refuses("route", lambda: here(x, seed=torch.tensor(3, device="meta")))
        self.refuses("route", lambda: here(x, samples={"noise": torch.randn(B * S, E, device="meta")}))
        expert = torch.zeros(6, 1, dtype=torch.int64)
        self.refuses("routing_loss", lambda: losses.switch(torch.randn(6, E), expert.to("meta")))
        packed = sparsight.MoEMLP(D, F, E).pack().experts
        with torch.no_grad():
            self.refuses("packed_moe_mlp", lambda: packed(torch.randn(6, D), expert.to("meta"), torch.ones(6, 1), "gelu"))

    def test_what_is_all_on_meta_has_shapes(self):
        with torch.device("meta"):
            layer = sparsight.MoEMLP(D, F, E)
        y, routing = layer(images().to("meta"), return_routing=True, seed=3)
        self.assertEqual((y.shape, y.device.type, routing.loss.device.type), ((B, S, D), "meta", "meta"))
        logits = torch.randn(6, E, device="meta")
        self.assertTrue(losses.vmoe_load(logits, logits, torch.tensor(0.5), 2).is_meta)  # a number goes with any device


if __name__ == "__main__":
    unittest.main()
