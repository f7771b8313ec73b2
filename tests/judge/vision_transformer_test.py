"""Vision transformers of timm and torchvision with random weights against the program: `train --init-from` at a learning rate of 0,
then `eval --records`, on random images in fp32."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import support  # noqa: E402,F401  (finds the built package)
import peer_timm  # noqa: E402
import peer_torchvision  # noqa: E402
import torch  # noqa: E402

vision_transformer, timm = peer_torchvision.import_vision_transformer(), peer_timm.import_timm()  # in this order
if timm is None and vision_transformer is None:
    print("needs timm or torchvision (pip install --no-deps timm==1.0.31 torchvision==0.28.0)")
    sys.exit(77)
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

PROGRAM = os.environ["SPARSIGHT_PROGRAM"]
CLASSES, IMAGES, MEAN, STD = 5, 4, (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
CONFIG = """
[data]
name = "folder"
root = "{folder}/images"

[transforms]
train = [{{op = "normalize", mean = {mean}, std = {std}}}]
eval = [{{op = "normalize", mean = {mean}, std = {std}}}]

[loader]
batch = 4
workers = 0

[model]
name = "vit"
width = {width}
depth = {depth}
heads = {heads}
patch = {patch}
mlp_ratio = {mlp_ratio}
pool = "{pool}"
qkv_bias = {qkv_bias}

[optimizer]
name = "sgd"
lr = 0

[train]
epochs = 1
"""


def random_shape(generator):
    def pick(*values):
        return values[int(generator.integers(len(values)))]

    heads, patch = pick(1, 2, 3), pick(4, 8)
    return {"width": heads * pick(8, 16), "depth": pick(1, 2, 3), "heads": heads, "patch": patch, "mlp_ratio": pick(1, 2, 4),
            "pool": "class", "qkv_bias": "true", "image": patch * pick(2, 3, 5)}


def far_from_init(model, seed):
    """Every term of the result shows."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def write_images(folder, side, generator):
    for split in ("train", "val", "test"):
        for label in range(CLASSES):
            os.makedirs(f"{folder}/images/{split}/class{label}")
            for i in range(IMAGES):
                pixels = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(f"{folder}/images/{split}/class{label}/{i}.png")


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def program_logits(folder, shape, weights):
    """The logits of the test images, in the order of classes and files."""
    import safetensors.numpy
    with open(f"{folder}/config.toml", "w") as file:
        file.write(CONFIG.format(folder=folder, mean=list(MEAN), std=list(STD), **shape))
    torch.save(weights, f"{folder}/weights.pt")
    run("train", f"{folder}/config.toml", "--out", f"{folder}/run", "--init-from", f"{folder}/weights.pt")
    run("eval", f"{folder}/run", "--records", f"{folder}/records")
    return torch.from_numpy(safetensors.numpy.load_file(f"{folder}/records/records.safetensors")["logits"])


def package_logits(folder, model):
    images = [np.asarray(Image.open(f"{folder}/images/test/class{label}/{i}.png")) for label in range(CLASSES) for i in range(IMAGES)]
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    with torch.no_grad():
        return model((pixels - mean) / std)


class Logits(unittest.TestCase):
    def same(self, make, seed, **changes):
        generator = np.random.default_rng(seed)
        shape = {**random_shape(generator), **changes}
        model = far_from_init(make(shape), seed)
        with self.subTest(shape), tempfile.TemporaryDirectory() as folder:
            write_images(folder, shape["image"], generator)
            ours, theirs = program_logits(folder, shape, model.state_dict()), package_logits(folder, model)
            self.assertGreater(theirs.std().item(), 0.05)
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)

    @unittest.skipIf(timm is None, "needs timm")
    def test_timm(self):
        from timm.models.vision_transformer import VisionTransformer

        def make(shape):
            mean = shape["pool"] == "mean"
            return VisionTransformer(
                img_size=shape["image"], patch_size=shape["patch"], num_classes=CLASSES, embed_dim=shape["width"],
                depth=shape["depth"], num_heads=shape["heads"], mlp_ratio=shape["mlp_ratio"], qkv_bias=shape["qkv_bias"] == "true",
                class_token=not mean, global_pool="avg" if mean else "token")

        for seed in range(4):
            self.same(make, seed)
        self.same(make, 4, pool="mean")
        self.same(make, 5, qkv_bias="false")

    @unittest.skipIf(vision_transformer is None, "needs torchvision")
    def test_torchvision(self):
        def make(shape):
            return vision_transformer.VisionTransformer(
                image_size=shape["image"], patch_size=shape["patch"], num_layers=shape["depth"], num_heads=shape["heads"],
                hidden_dim=shape["width"], mlp_dim=shape["mlp_ratio"] * shape["width"], num_classes=CLASSES)

        for seed in range(4):
            self.same(make, seed)


if __name__ == "__main__":
    unittest.main()
