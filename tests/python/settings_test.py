"""Settings of modules and losses, and the errors for invalid ones: one line, with the given value."""
import math
import unittest

import support  # noqa: F401
import numpy as np
import torch

import sparsight
from sparsight import losses

B, S, D, F, E = 2, 6, 8, 12, 4
HUGE = 2**63


class Settings(unittest.TestCase):
    def refuses(self, kind, message, make):
        with self.subTest(message):
            with self.assertRaisesRegex(kind, message) as caught:
                make()
            self.assertNotIn("\n", str(caught.exception))

    def test_seed_of_a_router_without_weights_is_its_option(self):
        x = torch.randn(B, 50, D)
        expert = [sparsight.Router("hash", D, E, seed=seed)(x).expert for seed in (None, 0, 1)]
        self.assertTrue(torch.equal(expert[0], expert[1]))
        self.assertFalse(torch.equal(expert[1], expert[2]))
        layer = sparsight.MoEMLP(D, F, E, router="hash", seed=1)
        self.assertTrue(torch.equal(layer.router(x).expert, expert[2]))
        self.assertIn("seed=1", repr(layer.router))

    def test_loss_weights_are_a_routers_own(self):
        router, other = sparsight.Router("softmax_topk", D, E), sparsight.Router("softmax_topk", D, E)
        before = dict(other.loss_weights)
        router.loss_weights.clear()
        self.assertTrue(before)
        self.assertEqual(other.loss_weights, before)
        self.assertEqual(sparsight.Router("softmax_topk", D, E).loss_weights, before)

    def test_settings_of_whole_models_are_refused(self):
        self.refuses(ValueError, "the setting \"scope\" applies to whole models",
                     lambda: sparsight.Router("softmax_topk", D, E, scope="model"))

    def test_numbers_of_numpy(self):
        layer = sparsight.MoEMLP(np.int32(D), np.int64(F), np.uint8(E), np.int64(3), noise=np.float32(0.5), seed=np.int64(1),
                                 renormalize=np.bool_(True), capacity={"factor": np.float64(1.5), "multiple": np.int64(2)},
                                 losses={"router_z": np.float32(0.25)})
        same = sparsight.MoEMLP(D, F, E, 3, noise=0.5, seed=1, renormalize=True, capacity={"factor": 1.5, "multiple": 2},
                                losses={"router_z": 0.25})
        self.assertEqual(layer.router._settings, same.router._settings)
        self.assertEqual(repr(layer), repr(same))
        self.refuses(ValueError, "router.noise must be a number, got a list",
                     lambda: sparsight.Router("softmax_topk", D, E, noise=np.ones(2)))

    def test_numbers_that_json_or_cpp_cannot_say(self):
        router = lambda **options: sparsight.Router("softmax_topk", **{"dim": D, "experts": E, **options})
        for name in ("dim", "experts", "k", "prefix", "seed"):
            self.refuses(ValueError, f"^{name} must fit in 64 bits, got {HUGE}$", lambda: router(**{name: HUGE}))
        self.refuses(ValueError, f"^k must fit in 64 bits, got -{HUGE + 1}$", lambda: router(k=-HUGE - 1))
        self.refuses(ValueError, "^hidden must fit in 64 bits", lambda: sparsight.MoEMLP(D, HUGE, E))
        self.refuses(ValueError, "^noise must be finite, got nan$", lambda: router(noise=[math.nan]))
        self.refuses(ValueError, "^switch must be finite, got inf$", lambda: router(losses={"switch": (math.inf,)}))

    def test_types(self):
        router = lambda **options: sparsight.Router("softmax_topk", D, E, **options)
        self.refuses(ValueError, 'router.k must be an integer, got a string: "2"', lambda: router(k="2"))
        self.refuses(ValueError, "losses must be a table, got a list", lambda: router(losses=[1.0]))
        self.refuses(TypeError, "^k must be a number, a string or a list of them, got <object", lambda: router(k=object()))
        for value in (None, torch.nn.functional.gelu):
            got = f"by name; got {type(value).__name__}$"
            self.refuses(TypeError, f"^activation must be .gelu., .*{got}",
                         lambda: sparsight.MoEMLP(D, F, E, activation=value))
            self.refuses(TypeError, f"^type must be .fp32., .*{got}", lambda: sparsight.MoEMLP(D, F, E).pack(value))

    def test_seeds_of_weights(self):
        router = sparsight.Router("softmax_topk", D, E, seed=1)
        before = router.weight.clone()
        for seed, kind, message in ((1.5, TypeError, "^seed must be an integer, got 1.5$"),
                                    (-1, ValueError, "^seed must be at least 0, got -1$"),
                                    (HUGE, ValueError, "^seed must fit in 64 bits")):
            self.refuses(kind, message, lambda: router.reset_parameters(seed))
        self.assertTrue(torch.equal(router.weight, before))
        router.reset_parameters(np.int64(1))
        self.assertTrue(torch.equal(router.weight, before))

    def test_losses(self):
        logits, expert = torch.randn(6, E), torch.zeros(6, 1, dtype=torch.int64)
        # What would end the text and go on with a setting of its own.
        for text in ('first", "switch_form": "gshard', 'a"b', "a\\", "a\nb", ""):
            self.refuses(ValueError, "^switch_counts must be a name, got ", lambda: losses.switch(logits, expert, counts=text))
        self.refuses(ValueError, "must be one of auto, first, mean, sum", lambda: losses.switch(logits, expert, counts="frist"))
        self.refuses(ValueError, "^k must fit in 64 bits", lambda: losses.load(logits, logits, torch.ones(()), HUGE))
        for shape in ((E,), (B, S, E), ()):
            wrong = torch.randn(shape)
            self.refuses(RuntimeError, "^the loss router_z needs logits or scores ", lambda: losses.router_z(wrong))
            self.refuses(RuntimeError, "^the loss sequence_balance needs ", lambda: losses.sequence_balance(wrong, 1))


if __name__ == "__main__":
    unittest.main()
