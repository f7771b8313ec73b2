"""Layers in several threads: docs/python.md#threads says what may happen at the same time."""
import threading
import time
import unittest

import support  # noqa: F401  (finds the built package)
import torch

import sparsight

SECONDS = 1.0


class Threads(unittest.TestCase):
    def run_beside(self, work, *others):
        """Calls `work` for a while, and `others` in threads of their own meanwhile."""
        stop, errors = threading.Event(), []

        def loop(call):
            while not stop.is_set():
                try:
                    call()
                except BaseException as error:  # noqa: BLE001
                    errors.append(error)
                    return

        threads = [threading.Thread(target=loop, args=(call,)) for call in others]
        for thread in threads:
            thread.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and not errors:
            work()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_one_layer_in_several_threads(self):
        torch.manual_seed(0)
        for router in ("softmax_topk", "expert_choice", "soft_moe"):
            layer, x = sparsight.MoEMLP(16, 32, 4, router=router).eval(), torch.randn(2, 20, 16)
            with torch.no_grad():
                expected = layer(x)

            def call():
                with torch.no_grad():
                    self.assertTrue(torch.equal(layer(x), expected))

            self.run_beside(call, call, call)

    def test_weights_that_change_meanwhile_never_crash(self):
        torch.manual_seed(0)
        for router in ("softmax_topk", "sigmoid_bias", "hierarchical"):
            layer, x = sparsight.MoEMLP(16, 32, 4, router=router), torch.randn(2, 20, 16)

            def forward():
                with torch.no_grad():
                    y, routing = layer(x, return_routing=True)
                self.assertEqual(y.shape, x.shape)
                self.assertLess(routing.expert.max().item(), 4)

            def change():
                with torch.no_grad():
                    for parameter in layer.parameters():
                        parameter.copy_(torch.randn_like(parameter))
                time.sleep(0.0005)

            self.run_beside(forward, change)

    def test_weights_that_change_before_the_backward_pass_are_an_error(self):
        layer = sparsight.MoEMLP(16, 32, 4)
        y = layer(torch.randn(2, 20, 16))
        with torch.no_grad():
            layer.experts.w1.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()


if __name__ == "__main__":
    unittest.main()
