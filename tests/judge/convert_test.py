"""`sparsight weights convert` against the libraries themselves: a model of one library with random weights is written
under the names of the others, loaded into their models with strict=True, and gives the same logits; back again it has
the same bits."""
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
try:
    import safetensors.torch
    import transformers
except ModuleNotFoundError:
    transformers = None
if timm is None or vision_transformer is None or transformers is None:
    print("needs timm, torchvision, transformers and safetensors (pip install --no-deps timm==1.0.31 torchvision==0.28.0; "
          "pip install transformers==5.24.0 safetensors)")
    sys.exit(77)

from program import PROGRAM  # noqa: E402

CLASSES = 5
VIT = {"width": 48, "depth": 2, "heads": 3, "patch": 4, "side": 16}


def far_from_init(model, seed):
    """Every term of the result shows."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif value.is_floating_point():
                value.add_(0.1 * torch.randn_like(value))
    return model.eval()


def timm_vit(distilled=False):
    from timm.models.deit import VisionTransformerDistilled
    from timm.models.vision_transformer import VisionTransformer
    make = VisionTransformerDistilled if distilled else VisionTransformer
    return make(img_size=VIT["side"], patch_size=VIT["patch"], num_classes=CLASSES, embed_dim=VIT["width"], depth=VIT["depth"],
                num_heads=VIT["heads"])


def torchvision_vit():
    return vision_transformer.VisionTransformer(
        image_size=VIT["side"], patch_size=VIT["patch"], num_layers=VIT["depth"], num_heads=VIT["heads"], hidden_dim=VIT["width"],
        mlp_dim=4 * VIT["width"], num_classes=CLASSES)


def transformers_vit(distilled=False):
    from transformers import DeiTConfig, DeiTForImageClassificationWithTeacher, ViTConfig, ViTForImageClassification
    config, model = (DeiTConfig, DeiTForImageClassificationWithTeacher) if distilled else (ViTConfig, ViTForImageClassification)
    return model(config(hidden_size=VIT["width"], num_hidden_layers=VIT["depth"], num_attention_heads=VIT["heads"],
                        intermediate_size=4 * VIT["width"], image_size=VIT["side"], patch_size=VIT["patch"], num_labels=CLASSES,
                        layer_norm_eps=1e-6))


def transformers_resnet(depths, layer, sizes):
    from transformers import ResNetConfig, ResNetForImageClassification
    return ResNetForImageClassification(ResNetConfig(embedding_size=64, hidden_sizes=sizes, depths=depths, layer_type=layer,
                                                     num_labels=CLASSES))


def torchvision_convnext():
    convnext = peer_torchvision.import_model("convnext")
    widths, depths = [16, 32, 48, 64], [1, 1, 2, 1]
    blocks = [convnext.CNBlockConfig(width, following, depth)
              for width, following, depth in zip(widths, [*widths[1:], None], depths)]
    return convnext.ConvNeXt(blocks, num_classes=CLASSES)


def timm_convnext():
    from timm.models.convnext import ConvNeXt
    return ConvNeXt(num_classes=CLASSES, dims=(16, 32, 48, 64), depths=(1, 1, 2, 1))


def transformers_convnext():
    from transformers import ConvNextConfig, ConvNextForImageClassification
    return ConvNextForImageClassification(ConvNextConfig(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1], num_labels=CLASSES,
                                                         layer_norm_eps=1e-6))


def logits(model, images):
    with torch.no_grad():
        out = model(images)
    return out if isinstance(out, torch.Tensor) else out.logits


class Converted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def convert(self, source, library, name):
        done = subprocess.run([PROGRAM, "weights", "convert", source, "--to", library, "--out", self.path(name), "--overwrite"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return safetensors.torch.load_file(self.path(name))

    def same(self, first, others, side, seed=0):
        """first, and each of others: (library, model)."""
        library, model = first
        far_from_init(model, seed)
        torch.manual_seed(seed + 1)
        images = torch.randn(3, 3, side, side)
        expected = logits(model, images)
        self.assertGreater(expected.std().item(), 0.01)
        own = model.state_dict()
        safetensors.torch.save_file(own, self.path("own.safetensors"), metadata={"format": "pt"})
        for other, peer in others:
            with self.subTest(library=other, model=type(peer).__name__):
                tensors = self.convert(self.path("own.safetensors"), other, f"{other}.safetensors")
                peer.load_state_dict(tensors, strict=True)
                scale = expected.abs().max()
                torch.testing.assert_close(logits(peer.eval(), images) / scale, expected / scale, rtol=0, atol=1e-4)
                back = self.convert(self.path(f"{other}.safetensors"), library, "back.safetensors")
                self.assertEqual(back.keys(), own.keys())
                for name, tensor in own.items():
                    self.assertTrue(torch.equal(back[name], tensor), name)

    def test_vision_transformers(self):
        self.same(("timm", timm_vit()), [("torchvision", torchvision_vit()), ("transformers-5", transformers_vit())], VIT["side"])
        self.same(("torchvision", torchvision_vit()), [("timm", timm_vit())], VIT["side"], seed=1)

    def test_distilled_vision_transformers(self):
        self.same(("timm", timm_vit(distilled=True)), [("transformers-5", transformers_vit(distilled=True))], VIT["side"])

    def test_files_of_transformers(self):
        """from_pretrained() finds every tensor under the names of its files."""
        model = far_from_init(timm_vit(), 2)
        torch.save(model.state_dict(), self.path("vit.pth"))
        peer = transformers_vit()
        peer.config.save_pretrained(self.folder.name)
        self.convert(self.path("vit.pth"), "huggingface", "model.safetensors")
        loaded, report = type(peer).from_pretrained(self.folder.name, output_loading_info=True)
        self.assertFalse(report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"], report)
        images = torch.randn(2, 3, VIT["side"], VIT["side"])
        torch.testing.assert_close(logits(loaded.eval(), images), logits(model, images), rtol=1e-4, atol=1e-4)

    def test_resnets(self):
        resnet = peer_torchvision.import_model("resnet")
        self.same(("torchvision", resnet.resnet18(num_classes=CLASSES)),
                  [("timm", timm.create_model("resnet18", num_classes=CLASSES)),
                   ("huggingface", transformers_resnet([2, 2, 2, 2], "basic", [64, 128, 256, 512]))], 40)
        self.same(("torchvision", resnet.resnet50(num_classes=CLASSES)),
                  [("timm", timm.create_model("resnet50", num_classes=CLASSES)),
                   ("huggingface", transformers_resnet([3, 4, 6, 3], "bottleneck", [256, 512, 1024, 2048]))], 40)

    def test_mobilenets(self):
        mobilenet = peer_torchvision.import_model("mobilenetv2")
        self.same(("torchvision", mobilenet.MobileNetV2(num_classes=CLASSES, width_mult=0.5)),
                  [("timm", timm.create_model("mobilenetv2_050", num_classes=CLASSES))], 64)

    def test_convnexts(self):
        self.same(("timm", timm_convnext()), [("torchvision", torchvision_convnext()), ("huggingface", transformers_convnext())], 64)


if __name__ == "__main__":
    unittest.main()
