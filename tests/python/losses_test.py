"""sparsight.losses: values by hand, opcheck, gradcheck, and the same numbers as the router gives."""
import json
import math
import unittest

import support  # noqa: F401
import torch

import sparsight
from sparsight import losses


class Losses(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_values_by_hand(self):
        # Sums of gates 3 and 1: mean 2, variance 1, CV² = 1/4; with E - 1 in the variance 1/2.
        gate, expert = torch.ones(4, 1), torch.tensor([[0], [0], [0], [1]])
        self.assertAlmostEqual(losses.importance(gate, expert, 2).item(), 0.25, places=6)
        self.assertAlmostEqual(losses.importance(gate, expert, 2, unbiased=True).item(), 0.5, places=6)
        # Even logits: p = 1/2 each, shares 3/4 and 1/4: E * (3/8 + 1/8) = 1. Logits that are sure: E * 1 = 2.
        self.assertAlmostEqual(losses.switch(torch.zeros(4, 2), expert).item(), 1, places=6)
        sure = torch.tensor([[50.0, 0]] * 4)
        self.assertAlmostEqual(losses.switch(sure, torch.zeros(4, 1, dtype=torch.int64)).item(), 2, places=6)
        self.assertAlmostEqual(losses.router_z(torch.zeros(4, 2)).item(), math.log(2) ** 2, places=6)
        self.assertAlmostEqual(losses.entropy(torch.zeros(4, 2)).item(), math.log(2), places=6)
        self.assertAlmostEqual(losses.marginal_entropy(sure).item(), math.log(2), places=5)
        self.assertAlmostEqual(losses.mutual_information(torch.tensor([[50.0, 0], [0, 50.0]])).item(), 0, places=5)
        self.assertAlmostEqual(losses.vmoe_importance(sure).item(), 1, places=5)  # E - 1
        self.assertAlmostEqual(losses.superclass(torch.zeros(4, 2), torch.tensor([[1.0, 0]])).item(), math.log(2), places=6)
        self.assertAlmostEqual(losses.sequence_balance(torch.tensor([[0.9, 0.1], [0.1, 0.9]]), 1).item(), 1, places=6)
        # k = E: every expert has every token.
        logits = torch.randn(4, 2)
        self.assertAlmostEqual(losses.load(logits, logits, torch.ones(4, 2), 2).item(), 0, places=6)

    def test_load_is_the_normal_distribution_function(self):
        clean, noise, scale = torch.randn(5, 3), torch.randn(5, 3), torch.rand(5, 3) + 0.5
        noisy = clean + noise * scale
        probability = torch.empty(5, 3)
        for e in range(3):  # k = 1: the threshold is the largest of the others
            threshold = noisy[:, [i for i in range(3) if i != e]].max(1).values
            probability[:, e] = torch.special.ndtr((clean[:, e] - threshold) / scale[:, e])
        total = probability.sum(0)
        torch.testing.assert_close(losses.load(clean, noisy, scale, 1), total.var(unbiased=False) / total.mean() ** 2)

    def test_equal_those_of_the_router(self):
        router = sparsight.Router("softmax_topk", 8, 4, losses={name: 1.0 for name in (
            "switch", "router_z", "entropy", "marginal_entropy", "mutual_information")}).eval()
        routing = router(torch.randn(10, 8))
        torch.testing.assert_close(routing.losses["switch"], losses.switch(routing.logits, routing.expert.view(10, 2)))
        for name in ("router_z", "entropy", "marginal_entropy", "mutual_information", "vmoe_importance"):
            torch.testing.assert_close(routing.losses[name], getattr(losses, name)(routing.logits))
        total = sum(weight * routing.losses[name] for name, weight in router.loss_weights.items())
        torch.testing.assert_close(routing.loss, total)

    def test_derivatives(self):
        logits = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
        noise = torch.randn(6, 4, dtype=torch.float64)
        scale = (torch.rand(6, 4, dtype=torch.float64) + 0.5).requires_grad_()
        gate = torch.rand(6, 2, dtype=torch.float64, requires_grad=True)
        expert = torch.rand(6, 4).topk(2).indices
        check = torch.autograd.gradcheck
        check(lambda g: losses.importance(g, expert, 4), (gate,))
        for loss in (losses.load, losses.vmoe_load):
            check(lambda x, s: loss(x, x + noise * s, s, 2), (logits, scale))
        for loss in (losses.vmoe_importance, losses.router_z, losses.entropy, losses.marginal_entropy,
                     losses.mutual_information):
            check(loss, (logits,))
        check(lambda x: losses.switch(x, expert), (logits,))
        check(lambda x: losses.sequence_balance(x.sigmoid(), 2, images=2), (logits,))

    def test_opcheck(self):
        logits = torch.randn(6, 4, requires_grad=True)
        for name in ("vmoe_importance", "switch", "router_z", "mutual_information"):
            torch.library.opcheck(sparsight.ops.routing_loss.default,
                                  (json.dumps({"loss": name, "experts": 4, "k": 2}), 1), {"logits": logits})
        gate, expert = torch.rand(6, 2, requires_grad=True), torch.rand(6, 4).topk(2).indices
        torch.library.opcheck(sparsight.ops.routing_loss.default,
                              (json.dumps({"loss": "importance", "experts": 4}), 1), {"gate": gate, "expert": expert})
        after = sparsight.Router("sigmoid_bias", 8, 4)
        weights = [weight.detach() for weight in after._weights()]
        torch.library.opcheck(sparsight.ops.router_after_step.default, (
            after._configs[True, True], 8, weights, [torch.rand(6, 4)], [torch.tensor([6, 3, 2, 1])],
            [torch.ones(6, dtype=torch.bool)]))
        config = json.dumps({"loss": "router_z", "experts": 4})
        torch.library.opcheck(sparsight.ops.routing_backward.default, (
            2, config, 1, "", [logits.detach(), *[None] * 8], [torch.ones(())], [True] + [False] * 8))

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "unknown loss .*did you mean \"load\""):
            losses._loss("lod", torch.randn(6, 4), logits=torch.randn(6, 4))
        with self.assertRaisesRegex(RuntimeError, "expert must lie between 0 and 1"):
            losses.switch(torch.zeros(1, 2), torch.tensor([[2]]))
        with self.assertRaisesRegex(RuntimeError, "the importance loss needs gate"):
            losses._loss("importance", torch.randn(6, 4), logits=torch.randn(6, 4))


if __name__ == "__main__":
    unittest.main()
