"""Complex numbers, and other types that nothing can be computed with: an error that names the tensor, from every operator."""
import unittest

import support
import torch

import sparsight
from sparsight import losses, ops

N, D, F, E = 6, 8, 12, 4


def imaginary(*shape):
    return torch.randn(*shape, dtype=torch.complex64)


def make_config(router):
    return router._configs[True, True]


class Complex(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def refuses(self, message, call):
        with self.subTest(message), self.assertRaisesRegex(RuntimeError, f"^{message}"):
            call()

    def route(self, capacity=None, **given):
        router = sparsight.Router("softmax_topk", D, E, capacity=capacity)
        arguments = {"config": make_config(router), "tokens": torch.randn(N, D), "images": 1,
                     "weights": [w.detach() for w in router._weights()], "seed": torch.tensor(3), "valid": None, "token_id": None,
                     "target": None, "sample_names": "", "samples": [], "priority": None, **given}
        return ops.route(*arguments.values())

    def test_route(self):
        self.route()
        self.refuses("a router needs floating-point tokens .* got ComplexFloat", lambda: self.route(tokens=imaginary(N, D)))
        self.refuses("the router's weight must be floating-point numbers, got ComplexFloat",
                     lambda: self.route(weights=[imaginary(E, D)]))
        self.refuses("the router's weight must be floating-point numbers, got Long",
                     lambda: self.route(weights=[torch.zeros(E, D, dtype=torch.long)]))
        self.refuses("valid must be bool, got ComplexFloat", lambda: self.route(valid=imaginary(N)))
        self.refuses("token_id must be integers, got ComplexFloat", lambda: self.route(token_id=imaginary(N)))
        self.refuses("target must be real numbers, got ComplexFloat", lambda: self.route(target=imaginary(1, E)))
        self.refuses("priority must be real numbers, got ComplexFloat",
                     lambda: self.route({"factor": 1.0, "priority": "given"}, priority=imaginary(N)))
        self.refuses('samples "noise" must be real numbers, got ComplexFloat',
                     lambda: self.route(sample_names="noise", samples=[imaginary(N, E)]))

    def test_experts(self):
        expert, weights = torch.randint(E, (N, 2)), [w.detach() for w in support.experts(E, D, F)]
        other = [w.to(torch.complex64) for w in weights]
        for tokens, name in ((imaginary(N, D), "ComplexFloat"), (torch.ones(N, D, dtype=torch.long), "Long")):
            for of in (weights, other):
                self.refuses(rf"experts need floating-point tokens \[N,D\], got {name}",
                             lambda: ops.moe_mlp(tokens, expert, torch.rand(N, 2), *of))
        self.refuses("gate must be floating-point .* got ComplexFloat",
                     lambda: ops.moe_mlp(torch.randn(N, D), expert, imaginary(N, 2), *weights))
        self.refuses("experts are packed from fp32 weights, got ComplexFloat", lambda: ops.pack_moe_mlp(*other, "fp32"))

    def test_losses(self):
        x, expert = torch.randn(N, E), torch.randint(E, (N, 2))
        self.refuses("logits must be real numbers, got ComplexFloat", lambda: losses.router_z(imaginary(N, E)))
        self.refuses("gate must be real numbers", lambda: losses.importance(imaginary(N, 2), expert, E))
        self.refuses("noisy_logits must be real numbers", lambda: losses.load(x, imaginary(N, E), torch.ones(()), 2))
        self.refuses("noise_scale must be real numbers", lambda: losses.load(x, x, imaginary(1)[0], 2))
        self.refuses("threshold must be real numbers", lambda: losses.threshold(x, imaginary(E), expert))
        self.refuses("expert must be real numbers", lambda: losses.switch(x, imaginary(N, 2)))

    def test_what_a_router_learns_from(self):
        router = sparsight.Router("balanced_batchwise", D, E)
        weights, valid = [w.detach() for w in router._weights()], torch.ones(N, dtype=torch.bool)
        call = lambda scores, count, valid=valid: ops.router_post_step_update(make_config(router), D, weights, [scores], [count], [valid],
                                                                              [], [])
        scores, count = torch.rand(N, E), torch.ones(E, dtype=torch.long)
        call(scores, count)
        self.refuses("scores must be real numbers, got ComplexFloat", lambda: call(imaginary(N, E), count))
        self.refuses("count must be real numbers, got ComplexFloat", lambda: call(scores, imaginary(E)))
        self.refuses(r"scores must be \[N,4\], got \[6, 3\]", lambda: call(scores[:, :3], count))
        self.refuses(r"scores must be \[N,4\], got \[6\]", lambda: call(scores[:, 0], count))
        self.refuses(r"count must be \[4\], got \[2\]", lambda: call(scores, count[:2]))
        self.refuses(r"valid must be bool \[6\], got Bool \[5\]", lambda: call(scores, count, valid[:5]))
        self.refuses(r"valid must be bool \[6\], got Float \[6\]", lambda: call(scores, count, valid.float()))


if __name__ == "__main__":
    unittest.main()
