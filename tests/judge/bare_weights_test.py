"""Weights files of timm, torchvision and transformers without any configuration: `predict`, `eval` and `attack` are given the
file alone, and the probabilities are those of the package. Files are archives of torch.save, also under the name of none, and
safetensors."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from functools import partial

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import support  # noqa: E402,F401  (finds the built package)
import peer_timm  # noqa: E402
import peer_torchvision  # noqa: E402
import torch  # noqa: E402

resnet, timm = peer_torchvision.import_model("resnet"), peer_timm.import_timm()  # in this order
if timm is None or resnet is None:
    print("needs timm and torchvision (pip install --no-deps timm==1.0.31 torchvision==0.28.0)")
    sys.exit(77)
import numpy as np  # noqa: E402
import safetensors.torch  # noqa: E402
from PIL import Image  # noqa: E402
from timm.layers import LayerNorm  # noqa: E402
from timm.models.vision_transformer import VisionTransformer  # noqa: E402

from program import CLASSES, IMAGES, PROGRAM, write_images  # noqa: E402

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
SIDE = 32


def far_from_init(model):
    """Every term of the result shows."""
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif value.is_floating_point():
                value.add_(0.1 * torch.randn_like(value))
    return model.eval()


def vit(**options):
    return VisionTransformer(img_size=SIDE, patch_size=8, num_classes=CLASSES, embed_dim=128, depth=2, num_heads=2, **options)


def cifar_resnet():
    model = resnet.resnet18(num_classes=CLASSES)
    model.conv1, model.maxpool = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False), torch.nn.Identity()
    return model


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments, "--quiet"], capture_output=True, text=True)


def probabilities(model, folder, statistics):
    """Of the test images, by file."""
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in statistics)
    files = [str(path) for path in sorted(pathlib.Path(folder, "images/test").rglob("*.png"))]
    pixels = torch.from_numpy(np.stack([np.asarray(Image.open(file)) for file in files])).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        return dict(zip(files, model((pixels - mean) / std).softmax(1)))


class BareWeights(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def predicted(self, file, folder, *flags):
        done = run("predict", file, f"{folder}/images/test", "--json", "--top", str(CLASSES), *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {line["image"]: line for line in map(json.loads, done.stdout.splitlines())}

    def same(self, model, file, expected, folder, *flags):
        lines = self.predicted(file, folder, *flags)
        self.assertEqual(len(lines), CLASSES * IMAGES)
        for image, theirs in expected.items():
            ours = torch.zeros(CLASSES)
            for entry in lines[image]["classes"]:
                ours[entry["label"]] = entry["probability"]
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)

    def test_predict(self):
        kinds = {"plain": (vit(), IMAGENET), "dinov2": (vit(init_values=0.3, reg_tokens=4, no_embed_class=True), IMAGENET),
                 "deit3": (vit(init_values=0.3, no_embed_class=True), IMAGENET),
                 "clip": (vit(pre_norm=True, norm_layer=partial(LayerNorm, eps=1e-5)), CLIP),
                 "mean": (vit(class_token=False, global_pool="avg"), IMAGENET), "resnet": (cifar_resnet(), IMAGENET)}
        with tempfile.TemporaryDirectory() as folder:
            write_images(folder, SIDE, np.random.default_rng(0))
            for name, (model, statistics) in kinds.items():
                far_from_init(model)
                expected = probabilities(model, folder, statistics)
                self.assertGreater(torch.stack(list(expected.values())).std(0).max().item(), 0.01)
                torch.save(model.state_dict(), f"{folder}/{name}.th")
                safetensors.torch.save_file(model.state_dict(), f"{folder}/{name}.safetensors", metadata={"format": "pt"})
                for file in (f"{folder}/{name}.th", f"{folder}/{name}.safetensors"):
                    with self.subTest(file=file):
                        self.same(model, file, expected, folder)

    def test_labels_and_normalisation(self):
        with tempfile.TemporaryDirectory() as folder:
            write_images(folder, SIDE, np.random.default_rng(0))
            model = far_from_init(vit())
            torch.save({"state_dict": model.state_dict()}, f"{folder}/vit.pth")
            pathlib.Path(f"{folder}/names.txt").write_text("".join(f"name {i}\n" for i in range(CLASSES)))
            flags = ("--labels", f"{folder}/names.txt", "--normalize", "half")
            self.same(model, f"{folder}/vit.pth", probabilities(model, folder, ((0.5,) * 3, (0.5,) * 3)), folder, *flags)
            for line in self.predicted(f"{folder}/vit.pth", folder, *flags).values():
                self.assertEqual(line["class"], f"name {line['label']}")

    def test_eval_and_attack(self):
        with tempfile.TemporaryDirectory() as folder:
            write_images(folder, SIDE, np.random.default_rng(0))
            model, file = far_from_init(vit()), f"{folder}/vit.th"
            torch.save(model.state_dict(), file)
            expected = probabilities(model, folder, IMAGENET)
            right = sum(f"/class{theirs.argmax().item()}/" in image for image, theirs in expected.items())
            evaluated = run("eval", file, "--data", f"{folder}/images", "--json")
            self.assertEqual(evaluated.returncode, 0, evaluated.stderr)
            self.assertAlmostEqual(json.loads(evaluated.stdout)["accuracy"], right / len(expected), places=6)
            attacked = run("attack", file, "--data", f"{folder}/images", "--attack", "fgsm", "--eps", "1/255", "--json", "--out",
                           f"{folder}/attack")
            self.assertEqual(attacked.returncode, 0, attacked.stderr)
            self.assertEqual(json.loads(attacked.stdout)["clean_accuracy"]["count"], right)

    def test_transformers(self):
        if importlib.util.find_spec("transformers") is None:
            self.skipTest("needs transformers (pip install transformers==5.24.0)")
        from transformers import ViTConfig, ViTForImageClassification
        config = ViTConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512, image_size=SIDE,
                           patch_size=8, num_labels=CLASSES, layer_norm_eps=1e-6)
        model = far_from_init(ViTForImageClassification(config))
        with tempfile.TemporaryDirectory() as folder:
            write_images(folder, SIDE, np.random.default_rng(0))
            model.save_pretrained(f"{folder}/vit")
            half = probabilities(lambda images: model(images).logits, folder, ((0.5,) * 3, (0.5,) * 3))
            self.same(model, f"{folder}/vit/model.safetensors", half, folder, "--normalize", "half")

    def test_authors_weights_of_dinov2(self):
        """Named as the authors name them, and with a position of the class token, which timm adds to that token."""
        with tempfile.TemporaryDirectory() as folder:
            write_images(folder, SIDE, np.random.default_rng(0))
            model, file = far_from_init(vit(init_values=0.3, reg_tokens=4, no_embed_class=True)), f"{folder}/authors.pth"
            weights, position = dict(model.state_dict()), torch.randn(1, 1, 128)
            weights["register_tokens"], weights["mask_token"] = weights.pop("reg_token"), torch.zeros(1, 128)
            weights["cls_token"] = weights["cls_token"] - position
            weights["pos_embed"] = torch.cat([position, weights["pos_embed"]], 1)
            torch.save(weights, file)
            self.same(model, file, probabilities(model, folder, IMAGENET), folder)


if __name__ == "__main__":
    unittest.main()
