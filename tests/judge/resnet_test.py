"""ResNets of torchvision with random weights against the program: `train --init-from` at a learning rate of 0 with frozen batch norm,
then `eval --records`, on random images in fp32."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import support  # noqa: E402,F401  (finds the built package)
import peer_torchvision  # noqa: E402
import torch  # noqa: E402

resnet = peer_torchvision.import_model("resnet")
if resnet is None:
    print("needs torchvision (pip install --no-deps torchvision==0.28.0)")
    sys.exit(77)
import numpy as np  # noqa: E402
from program import CLASSES, package_logits, program_logits, write_images  # noqa: E402

MODEL = """
name = "resnet"
depth = {depth}
stem = "{stem}"
frozen_batch_norm = true
"""


def random_network(depth, stem, seed):
    """Every term of the result shows."""
    torch.manual_seed(seed)
    model = getattr(resnet, f"resnet{depth}")(num_classes=CLASSES)
    if stem == "cifar":  # what implementations for small images change
        model.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif value.dim() == 1:
                value.add_(0.3 * torch.randn_like(value))
    return model.eval()


class Logits(unittest.TestCase):
    def same(self, depth, stem, side):
        generator = np.random.default_rng(depth + side)
        model = random_network(depth, stem, seed=depth)
        with self.subTest(depth=depth, stem=stem, side=side), tempfile.TemporaryDirectory() as folder:
            write_images(folder, side, generator)
            ours = program_logits(folder, MODEL.format(depth=depth, stem=stem), model.state_dict())
            theirs = package_logits(folder, model)
            scale = theirs.abs().max().item()
            self.assertGreater(theirs.std(0).max().item(), 1e-2 * scale)
            torch.testing.assert_close(ours / scale, theirs / scale, rtol=0, atol=1e-4)

    def test_torchvision(self):
        self.same(18, "imagenet", 48)
        self.same(34, "imagenet", 33)
        self.same(50, "imagenet", 40)
        self.same(18, "cifar", 16)


if __name__ == "__main__":
    unittest.main()
