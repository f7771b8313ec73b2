"""torch.export: a saved program is loaded again and computes what the layer computes."""
import io
import unittest

import support  # noqa: F401  (finds the built package)
import torch

import sparsight

B, S, D, F, E = 2, 6, 8, 12, 4


def saved_and_loaded(module, x):
    """The exported program, for any number of images, through a file."""
    file = io.BytesIO()
    torch.export.save(torch.export.export(module, (x,), dynamic_shapes={"x": {0: torch.export.Dim("images")}}), file)
    file.seek(0)
    return torch.export.load(file).module()


class WithLosses(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y, routing = self.layer(x, return_routing=True)
        return y, routing.loss


class SavedPrograms(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_every_router(self):
        for name in sorted(sparsight.routers()):
            layer = sparsight.MoEMLP(D, F, E, router=name).eval()
            loaded = saved_and_loaded(layer, torch.randn(B, S, D))
            for count in (1, 3):
                x = torch.randn(count, S, D)
                with self.subTest(name, images=count):
                    torch.testing.assert_close(loaded(x), layer(x))

    def test_losses_and_metrics(self):
        for name in ("softmax_topk", "relu", "hash"):  # losses; metrics too; none of both
            module = WithLosses(sparsight.MoEMLP(D, F, E, router=name)).eval()
            loaded, x = saved_and_loaded(module, torch.randn(B, S, D)), torch.randn(3, S, D)
            with self.subTest(name):
                torch.testing.assert_close(loaded(x), module(x))


if __name__ == "__main__":
    unittest.main()
