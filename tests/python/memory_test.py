"""What a thread keeps about the routers that it has called is bounded, however many distinct configurations there were."""
import pathlib
import unittest

import support  # noqa: F401  (finds the built package)
import torch

import sparsight
from sparsight import ops

STATM = pathlib.Path("/proc/self/statm")
KEPT = 256  # configurations that a thread keeps (csrc/router_setup.cpp)
SIZE = 100_000  # bytes of each here


def resident():
    """MB."""
    return int(STATM.read_text().split()[1]) * 4096 / 1e6


def use(first, count):
    """Calls routers of different configurations: they differ in their number of spaces."""
    router, x = sparsight.Router("softmax_topk", 8, 4), torch.randn(4, 8)
    weights, seed = [w.detach() for w in router._weights()], torch.tensor(3)
    for i in range(first, first + count):
        ops.route(router._configs[True, False] + " " * (SIZE + i), x, 1, weights, seed, None, None, None, "", [])


class Memory(unittest.TestCase):
    @unittest.skipUnless(STATM.exists(), "needs /proc")
    def test_configurations_that_are_not_used_any_more_are_freed(self):
        use(0, 2 * KEPT)
        before = resident()
        use(2 * KEPT, 4 * KEPT)  # 102 MB if they were kept
        self.assertLess(resident() - before, 20)

    def test_a_layer_that_was_not_used_for_long_is_the_same(self):
        torch.manual_seed(0)
        layer, x = sparsight.MoEMLP(8, 8, 4, router="noisy_topk", seed=1), torch.randn(1, 4, 8, requires_grad=True)
        y, routing = layer(x, return_routing=True, seed=3)
        gradient = torch.autograd.grad(y.sum() + routing.loss, x, retain_graph=True)[0]
        use(10 * KEPT, KEPT + 1)
        again, routing_again = layer(x, return_routing=True, seed=3)
        self.assertTrue(torch.equal(y, again))
        self.assertTrue(torch.equal(torch.autograd.grad(y.sum() + routing.loss, x)[0], gradient))
        self.assertTrue(torch.equal(torch.autograd.grad(again.sum() + routing_again.loss, x)[0], gradient))


if __name__ == "__main__":
    unittest.main()
