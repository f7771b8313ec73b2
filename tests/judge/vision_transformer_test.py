"""Vision transformers of timm and torchvision with random weights against the program: `train --init-from` at a learning rate of 0,
then `eval --records`, on random images in fp32."""
import pathlib
import sys
import tempfile
import unittest
from functools import partial

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

from program import CLASSES, package_logits, program_logits, write_images  # noqa: E402

MODEL = """
name = "vit"
width = {width}
depth = {depth}
heads = {heads}
patch = {patch}
mlp_ratio = {mlp_ratio}
pool = "{pool}"
qkv_bias = {qkv_bias}
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


class Logits(unittest.TestCase):
    def same(self, make, seed, settings="", **changes):
        """settings: further lines of [model]."""
        generator = np.random.default_rng(seed)
        shape = {**random_shape(generator), **changes}
        model = far_from_init(make(shape), seed)
        with self.subTest(shape), tempfile.TemporaryDirectory() as folder:
            write_images(folder, shape["image"], generator)
            ours, theirs = program_logits(folder, MODEL.format(**shape) + settings, model.state_dict()), package_logits(folder, model)
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

    @unittest.skipIf(timm is None, "needs timm")
    def test_timm_with_scales_registers_and_first_norm(self):
        from timm.layers import LayerNorm
        from timm.models.vision_transformer import VisionTransformer

        # DINOv2, with registers, DeiT-III, CLIP; all at once, for the mean of patches too
        variants = [({"init_values": 0.3}, "layer_scale = 1e-5"),
                    ({"init_values": 0.3, "reg_tokens": 4, "no_embed_class": True},
                     "layer_scale = 1e-5\nreg_tokens = 4\nno_embed_class = true"),
                    ({"init_values": 0.3, "no_embed_class": True}, "layer_scale = 1e-5\nno_embed_class = true"),
                    ({"pre_norm": True, "norm_layer": partial(LayerNorm, eps=1e-3)}, "pre_norm = true\nnorm_eps = 1e-3"),
                    ({"init_values": 0.3, "reg_tokens": 2, "pre_norm": True}, "layer_scale = 1\nreg_tokens = 2\npre_norm = true")]
        for seed, (options, settings) in enumerate(variants):
            for pool in ("class", "mean") if seed == len(variants) - 1 else ("class",):
                def make(shape):
                    return VisionTransformer(
                        img_size=shape["image"], patch_size=shape["patch"], num_classes=CLASSES, embed_dim=shape["width"],
                        depth=shape["depth"], num_heads=shape["heads"], mlp_ratio=shape["mlp_ratio"], class_token=pool == "class",
                        global_pool="token" if pool == "class" else "avg", **options)
                self.same(make, 10 + seed, settings, pool=pool)

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
