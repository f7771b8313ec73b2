"""sparsight.losses: values by hand, and the same numbers as every router gives. opcheck and gradcheck: registry_test.py."""
import math
import unittest

import loss_cases
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
        # Two images of two tokens, of classes 0 and 1: (1 - 2) + (3 - 0) = 2 and (1 - 0) + (0 - 4) = -3.
        logits = torch.tensor([[1.0, 2], [3, 0], [0, 1], [4, 0]])
        self.assertAlmostEqual(losses.separation(logits, torch.eye(2)).item(), -(2 - 3) / 2, places=6)
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

    def test_vmoe_losses_and_their_variants(self):
        clean, noise = torch.randn(5, 3), torch.randn(5, 3)
        noisy = clean + noise / 3
        threshold = noisy.topk(2).values[:, 1:]  # k = 2: the same for all experts of a token
        for unbiased in (False, True):
            squared_cv = lambda total: total.var(unbiased=unbiased) / total.mean() ** 2
            torch.testing.assert_close(losses.vmoe_importance(clean, unbiased=unbiased), squared_cv(clean.softmax(1).sum(0)))
            for of, compared in (("logits", clean), ("scores", clean.softmax(1))):
                torch.testing.assert_close(
                    losses.vmoe_load(clean, noisy, torch.tensor(1 / 3), 2, of=of, unbiased=unbiased),
                    squared_cv(torch.special.ndtr((compared - threshold) * 3).sum(0)))

    def test_threshold_by_hand(self):
        # Expert 0 takes token 0 and expert 1 token 1, but 0.9, 0.6 and 0.7 exceed 0.5: one score too many, by 0.1.
        scores, threshold = torch.tensor([[0.9, 0.2], [0.6, 0.7]]), torch.full((2,), 0.5, requires_grad=True)
        for expert, token in ((torch.tensor([[0], [1]]), None), (torch.tensor([1, 0]), torch.tensor([1, 0]))):
            loss = losses.threshold(scores, threshold, expert, token=token)
            self.assertAlmostEqual(loss.item(), 0.1, places=6)
            # Rows chosen - rows that exceed: 1 - 2 and 1 - 1.
            self.assertEqual(torch.autograd.grad(loss, threshold)[0].tolist(), [-1, 0])
        scores.requires_grad_()
        loss = losses.threshold(scores, threshold, expert, token=token)
        self.assertEqual(torch.autograd.grad(loss, scores)[0].abs().max(), 0)
        loss = losses.threshold(scores, threshold, expert, token=token, score_gradient=True)
        self.assertEqual(torch.autograd.grad(loss, scores)[0].tolist(), [[0, 0], [1, 0]])
        self.assertEqual(losses.threshold(scores, threshold, torch.tensor([[0, -1], [0, 1]])).item(), 0)

    def test_choices_that_were_not_made(self):
        expert = torch.tensor([[0, -1], [0, 1]])
        # Sums of gates 2 and 1: mean 3/2, variance 1/4, CV² = 1/9. The gate of no choice counts in nothing.
        gate = torch.tensor([[1.0, 5], [1, 1]], requires_grad=True)
        loss = losses.importance(gate, expert, 2)
        self.assertAlmostEqual(loss.item(), 1 / 9, places=6)
        self.assertEqual(torch.autograd.grad(loss, gate)[0][0, 1], 0)
        # Surely expert 0: E * its choices over K tokens (2/4), or its share of first choices (1).
        sure = torch.tensor([[50.0, 0], [50, 0]])
        self.assertAlmostEqual(losses.switch(sure, expert).item(), 1, places=6)
        self.assertAlmostEqual(losses.switch(sure, expert, counts="first").item(), 2, places=6)
        self.assertEqual(losses.importance(gate, torch.full((2, 2), -1), 2).item(), 0)

    def test_experts_that_choose_tokens(self):
        # Expert 0 takes tokens 0 and 2 with gates of 1, expert 1 token 2 with 1: as above.
        gate, expert, token = torch.ones(3), torch.tensor([0, 0, 1]), torch.tensor([0, 2, 2])
        self.assertAlmostEqual(losses.importance(gate, expert, 2, token=token).item(), 1 / 9, places=6)
        # Without token 0: one gate each.
        self.assertEqual(losses.importance(gate, expert, 2, token=token, valid=torch.tensor([False, True, True])).item(), 0)

    def test_padding_counts_in_nothing(self):
        logits, expert, valid = torch.randn(6, 4), torch.rand(6, 4).topk(2).indices, torch.arange(6) < 4
        for loss in (losses.router_z, losses.entropy, losses.marginal_entropy, losses.vmoe_importance):
            torch.testing.assert_close(loss(logits, valid=valid), loss(logits[:4]))
        torch.testing.assert_close(losses.switch(logits, expert, valid=valid), losses.switch(logits[:4], expert[:4]))

    def test_half_types_are_computed_in_fp32(self):
        for half in (torch.bfloat16, torch.float16):
            for name, each in loss_cases.cases(half).items():
                for case in each:
                    (config, images), given = loss_cases.operator_call(*case)
                    wide = {key: x.detach().float().requires_grad_(x.requires_grad) if x is not None and x.dtype == half else x
                            for key, x in given.items()}
                    leaves = [key for key, x in given.items() if x is not None and x.requires_grad]
                    with self.subTest(name, half=half):
                        self.assertTrue(leaves)
                        value, expected = (sparsight.ops.routing_loss(config, images, **t) for t in (given, wide))
                        self.assertEqual(value.dtype, torch.float32)
                        self.assertTrue(torch.equal(value, expected))
                        gradients, exact = (torch.autograd.grad(y, [t[key] for key in leaves])
                                            for y, t in ((value, given), (expected, wide)))
                        for a, b in zip(gradients, exact):
                            self.assertTrue(torch.equal(a, b.to(half)))

    def test_half_types_count_many_tokens(self):
        # bf16 has 8 bits: counting by ones it stops at 256.
        logits, expert = torch.randn(4096, 4) + torch.tensor([2.0, 0, 0, 0]), torch.zeros(4096, 1, dtype=torch.int64)
        for half in (torch.bfloat16, torch.float16):
            narrow, gate = logits.to(half), torch.rand(4096, 1).to(half)
            torch.testing.assert_close(losses.switch(narrow, expert), losses.switch(narrow.float(), expert))
            self.assertAlmostEqual(losses.importance(gate, expert, 4).item(), 3, places=5)  # E - 1
            scale = torch.ones((), dtype=half)
            torch.testing.assert_close(losses.load(narrow, narrow, scale, 1),
                                       losses.load(narrow.float(), narrow.float(), scale.float(), 1))

    def test_autocast_changes_nothing(self):
        for name, each in loss_cases.cases(torch.float32).items():
            for run, inputs in each:
                with self.subTest(name):
                    expected = run(*inputs)
                    with torch.autocast("cpu", torch.bfloat16):
                        value = run(*inputs)
                    self.assertTrue(torch.equal(value, expected))
                    for a, b in zip(torch.autograd.grad(value, inputs), torch.autograd.grad(expected, inputs)):
                        self.assertTrue(torch.equal(a, b))

    def test_forward_mode_is_refused(self):
        for name, each in loss_cases.cases(torch.float32).items():
            run, inputs = each[0]
            values = tuple(x.detach() for x in inputs)
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "no forward-mode derivative; use reverse mode"):
                torch.func.jvp(run, values, tuple(torch.ones_like(x) for x in values))

    def of_routing(self, name, r, router, target):
        """The loss of a routing without noise."""
        per_token = r.expert.view(len(target) * 6, -1) if router.per_token else r.expert
        if name == "importance":
            return losses.importance(r.gate, r.expert, 4, token=r.token)
        if name == "switch":
            counts = {"gshard_top2": "first", "top_p": "sum"}  # as in their papers
            return losses.switch(r.logits, per_token, counts=counts.get(router.name, "mean"))
        if name == "threshold":
            value = losses.threshold(r.scores, router.threshold, r.expert, token=r.token)
            if router.groups:
                token, group = r.group_chosen.nonzero(as_tuple=True)
                value = value + losses.threshold(r.group_scores, router.group_threshold, group, token=token)
            return value
        if name == "sequence_balance":
            return losses.sequence_balance(r.scores, router.per_token, images=len(target))
        if name in ("superclass", "separation"):
            return getattr(losses, name)(r.logits, target)
        return getattr(losses, name)(r.logits)

    def test_equal_those_of_every_router(self):
        names = [name for name in losses.names() if name not in ("load", "vmoe_load")]  # those two need noise
        x, target = torch.randn(2, 6, 8), torch.rand(2, 4).softmax(1)
        # Training for those whose choice has no noise, evaluation for the rest.
        ways = [(name, {}, False) for name in sparsight.routers()]
        ways += [(name, {}, True) for name in ("expert_choice", "patch_choice", "balanced_batchwise", "balanced_hierarchical")]
        ways += [("gshard_top2", {"second": "threshold", "threshold": 0.4}, True)]
        compared = set()
        for router_name, options, training in ways:
            router = sparsight.Router(router_name, 8, 4, losses=dict.fromkeys(names, 1.0), **options).train(training)
            for parameter in router.parameters():
                torch.nn.init.normal_(parameter)
            if router.soft:
                continue
            r = router(x, target=target)
            if router_name == "gshard_top2" and training:
                self.assertTrue((r.expert == -1).any())
            for name in names:
                with self.subTest(router_name, training=training, loss=name):
                    no_logits = len(r.logits) == 0 and name not in ("importance", "threshold", "sequence_balance")
                    no_scores = len(r.scores) == 0 or not router.per_token or router_name in ("relu", "top_p")  # K varies
                    no_threshold = not hasattr(router, "threshold")
                    if (no_logits or (name == "sequence_balance" and no_scores) or (name == "threshold" and no_threshold)
                            or (name == "switch" and not router.per_token)):
                        self.assertEqual(r.losses[name], 0)  # not defined
                        continue
                    torch.testing.assert_close(r.losses[name], self.of_routing(name, r, router, target))
                    compared.add(name)
            torch.testing.assert_close(r.loss, sum(r.losses.values()))
        self.assertEqual(compared, set(names))

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "unknown loss .*did you mean \"load\""):
            losses._loss("lod", torch.randn(6, 4), logits=torch.randn(6, 4))
        for wrong in (2, -2):
            with self.assertRaisesRegex(RuntimeError, f"expert must lie between -1 and 1, got {wrong}"):
                losses.switch(torch.zeros(1, 2), torch.tensor([[wrong]]))
        with self.assertRaisesRegex(RuntimeError, "token must lie between 0 and 2, got 3"):
            losses.threshold(torch.zeros(3, 2), torch.zeros(2), torch.tensor([0]), token=torch.tensor([3]))
        with self.assertRaisesRegex(RuntimeError, r"expert must be int64 \[N,K\], or \[A\] together with token .* got \[3\]"):
            losses.switch(torch.zeros(3, 2), torch.tensor([0, 1, 0]))
        with self.assertRaisesRegex(RuntimeError, r'"switch" counts the K choices of each token: it needs expert \[N,K\]'):
            losses._loss("switch", torch.zeros(3, 2), logits=torch.zeros(3, 2), expert=torch.tensor([0, 1, 0]),
                         token=torch.tensor([0, 0, 2]))
        logits = torch.randn(6, 4)
        for k, message in ((2.5, "k must be an integer, got 2.5"), (0, "k must be at least 1, got 0"),
                           (True, "k must be an integer, got true"), (None, "k must be a number, got None"),
                           (math.nan, "k must be finite, got nan"), (1j, "k must be a number, got 1j"),
                           (torch.tensor(math.inf).numpy()[()], "k must be finite, got inf")):
            with self.assertRaisesRegex(ValueError, message):
                losses.load(logits, logits, torch.ones(()), k)
        with self.assertRaisesRegex(ValueError, "group_tokens must be at least 0, got -1"):
            losses.switch(logits, torch.zeros(6, 1, dtype=torch.int64), group_tokens=-1)
        for wrong in (math.nan, -1.0):
            with self.assertRaisesRegex(RuntimeError, "target must be finite numbers of at least 0"):
                losses.superclass(logits, torch.full((2, 4), wrong))
        with self.assertRaisesRegex(RuntimeError, "the importance loss needs the gates"):
            losses._loss("importance", torch.randn(6, 4), logits=torch.randn(6, 4))


if __name__ == "__main__":
    unittest.main()
