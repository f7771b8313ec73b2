"""MobileNetV2 of torchvision with random weights against the program: `train --init-from` at a learning rate of 0 with frozen batch
norm, then `eval --records`, on random images in fp32."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import support  # noqa: E402,F401  (finds the built package)
import peer_torchvision  # noqa: E402
import torch  # noqa: E402

mobilenetv2 = peer_torchvision.import_model("mobilenetv2")
if mobilenetv2 is None:
    print("needs torchvision (pip install --no-deps torchvision==0.28.0)")
    sys.exit(77)
import numpy as np  # noqa: E402
from program import CLASSES, package_logits, program_logits, write_images  # noqa: E402

MODEL = """
name = "mobilenet"
width = {width}
dropout = 0
frozen_batch_norm = true
"""


def random_network(width, seed):
    """Every term of the result shows."""
    torch.manual_seed(seed)
    model = mobilenetv2.MobileNetV2(num_classes=CLASSES, width_mult=width)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif value.dim() == 1:
                value.add_(0.3 * torch.randn_like(value))
            elif value.dim() == 4:  # torchvision's own make the images vanish without batch statistics
                value.normal_(0, 1.4 / value[0].numel() ** 0.5)
            elif value.dim() == 2:
                value.mul_(10)
    return model.eval()


class Logits(unittest.TestCase):
    def test_torchvision(self):
        for width, side in ((1.0, 48), (0.75, 40), (0.5, 64)):
            model = random_network(width, seed=side)
            with self.subTest(width=width, side=side), tempfile.TemporaryDirectory() as folder:
                write_images(folder, side, np.random.default_rng(side))
                ours = program_logits(folder, MODEL.format(width=width), model.state_dict())
                theirs = package_logits(folder, model)
                scale = theirs.abs().max().item()
                self.assertGreater(theirs.std(0).max().item(), 1e-2 * scale)
                torch.testing.assert_close(ours / scale, theirs / scale, rtol=0, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
