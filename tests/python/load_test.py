"""sparsight.load: trained runs and foreign weights as PyTorch modules, against what the program says of them."""
import copy
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import support  # noqa: F401  (finds the built package)
import torch
from attack_test import read_tensors

import sparsight

PROGRAM = os.environ.get("SPARSIGHT_PROGRAM", str(support.BUILD / "cli/sparsight"))
CONFIG = """
[data]
name = "glyphs"
side = 16
classes = 4
super_classes = 0
domains = ["clean"]
train = 512
validation = 1
test = 64
[model]
name = "vit"
width = 32
depth = 2
heads = 2
patch = 4
drop_path = 0.1
[moe]
blocks = [-1]
experts = 4
[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.25]}]
eval = [{op = "normalize", mean = [0.5], std = [0.25]}]
[loader]
batch = 32
[train]
epochs = 20
keep = "last"
ema_decay = 0.9
[optimizer]
lr = 0.002
"""


class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "config.toml").write_text(CONFIG)
        cls.trained = cls.path / "run"
        cls.program("train", cls.path / "config.toml", "--out", cls.trained)
        cls.program("attack", cls.trained, "--attack", "pgd", "--eps", "16/255", "--seed", 3, "--out", cls.path / "pgd")
        cls.program("attack", cls.trained, "--attack", "fgsm", "--eps", "0", "--out", cls.path / "clean")
        cls.clean, cls.attacked = (read_tensors(cls.path / name / "adversarial.safetensors") for name in ("clean", "pgd"))
        cls.images, cls.labels = cls.clean["pixels"], cls.clean["label"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def program(cls, *words):
        done = subprocess.run([PROGRAM, *map(str, words), "--quiet"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_logits_are_the_programs(self):
        model = sparsight.load(self.trained)
        self.assertFalse(model.training)
        with torch.no_grad():
            self.assertTrue(model(self.images).equal(self.clean["clean_logits"]))
        found = json.loads(self.program("eval", self.trained, "--json"))
        accuracy = (model(self.images).argmax(1) == self.labels).double().mean().item()
        self.assertAlmostEqual(accuracy, found["accuracy"])
        self.assertEqual((len(model.classes), model.image_shape, model.weights), (4, (3, 16, 16), "ema"))

    def test_names_are_those_of_the_checkpoint(self):
        stored = {name for name in read_tensors(self.trained / "checkpoints/last.safetensors") if "/" not in name}
        state = sparsight.load(self.trained).state_dict()
        self.assertEqual(set(state), stored)
        self.assertIn("blocks.1.mlp.router.weight", state)

    def test_attacks_are_the_programs(self):
        found = sparsight.attack(sparsight.load(self.trained), self.images, self.labels, "16/255", "pgd", seed=3)
        self.assertTrue(found.stage.equal(self.attacked["stage"]))
        self.assertTrue(found.images.equal(self.attacked["pixels"]))
        self.assertLess(found.robust_accuracy, found.clean_accuracy)

    def test_it_trains(self):
        model = sparsight.load(self.trained).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        losses = []
        for _ in range(20):
            loss = torch.nn.functional.cross_entropy(model(self.images), self.labels)
            self.assertGreater(model.aux_loss.item(), 0)
            optimizer.zero_grad()
            (loss + model.aux_loss).backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])
        self.assertTrue(all(p.grad is not None for p in model.parameters()))
        model.eval()
        self.assertTrue(model(self.images).equal(model(self.images)))
        self.assertEqual(model.aux_loss.item(), 0)

    def test_gradients_in_float64(self):
        model = sparsight.load(self.trained).double()
        images = self.images[:1].double().requires_grad_()
        (gradient,) = torch.autograd.grad(model(images)[0, 0], images)
        step = torch.zeros_like(images)
        step[0, 0, 3, 5] = 1e-6
        with torch.no_grad():
            numeric = (model(images + step) - model(images - step))[0, 0] / 2e-6
        self.assertAlmostEqual(numeric.item(), gradient[0, 0, 3, 5].item(), places=6)

    def test_state_is_the_models_own(self):
        model = sparsight.load(self.trained)
        before = model(self.images)
        with torch.no_grad():
            model.get_parameter("head.bias").add_(1)
        self.assertTrue(torch.allclose(model(self.images), before + 1, atol=1e-5))
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            self.assertTrue(other(self.images).equal(model(self.images)))
            other.get_parameter("head.bias").data.zero_()
            self.assertFalse(other(self.images).equal(model(self.images)))

    def test_buffers_follow_types_and_states(self):
        path = self.path / "biased"
        self.program("train", self.path / "config.toml", "--out", path, "--set", "router.name=sigmoid_bias", "--set",
                     "train.epochs=1")
        model = sparsight.load(path).double()
        name = next(name for name, _ in model.named_buffers() if "router" in name)
        images = self.images.double()
        before = model(images)
        state = {key: value.clone() for key, value in model.state_dict().items()}
        state[name] += torch.linspace(-5, 5, state[name].numel(), dtype=state[name].dtype).view_as(state[name])
        model.load_state_dict(state)
        self.assertFalse(model(images).equal(before))
        other = copy.deepcopy(model.requires_grad_(False))
        self.assertTrue(other(images).equal(model(images)))
        self.assertFalse(any(p.requires_grad for p in other.parameters()))
        self.assertEqual(other.get_buffer(name).dtype, torch.float64)

    def test_replaced_and_damaged_weights_are_refused(self):
        model = sparsight.load(self.trained)
        model.load_state_dict(model.state_dict(), assign=True)
        with self.assertRaisesRegex(RuntimeError, "of a loaded model was replaced"):
            model(self.images)
        model = sparsight.load(self.trained)
        model.get_parameter("head.bias").data = torch.zeros(1)
        with self.assertRaisesRegex(RuntimeError, r"head.bias must stay \[4\]"):
            model(self.images)
        model = sparsight.load(self.trained)
        model.get_parameter("head.weight").untyped_storage().resize_(0)
        with self.assertRaisesRegex(RuntimeError, "storage"):
            model(self.images)

    def test_foreign_weights(self):
        state = sparsight.load(self.trained, settings="router.eval_k=1").state_dict()
        self.assertIn("head.bias", state)
        torch.manual_seed(0)
        weights = {"cls_token": torch.zeros(1, 1, 192), "pos_embed": torch.randn(1, 5, 192) * 0.02,
                   "patch_embed.proj.weight": torch.randn(192, 3, 16, 16) * 0.02, "patch_embed.proj.bias": torch.zeros(192),
                   "norm.weight": torch.ones(192), "norm.bias": torch.zeros(192), "head.weight": torch.randn(5, 192),
                   "head.bias": torch.zeros(5)}
        for i in range(2):
            block = {"norm1.weight": torch.ones(192), "norm1.bias": torch.zeros(192), "norm2.weight": torch.ones(192),
                     "norm2.bias": torch.zeros(192), "attn.qkv.weight": torch.randn(576, 192) * 0.05,
                     "attn.qkv.bias": torch.zeros(576), "attn.proj.weight": torch.randn(192, 192) * 0.05,
                     "attn.proj.bias": torch.zeros(192), "mlp.fc1.weight": torch.randn(768, 192) * 0.05,
                     "mlp.fc1.bias": torch.zeros(768), "mlp.fc2.weight": torch.randn(192, 768) * 0.05,
                     "mlp.fc2.bias": torch.zeros(192)}
            weights |= {f"blocks.{i}.{name}": tensor for name, tensor in block.items()}
        torch.save(weights, self.path / "vit.pth")
        (self.path / "names.txt").write_text("a\nb\nc\nd\ne\n")
        model = sparsight.load(self.path / "vit.pth", labels=str(self.path / "names.txt"), normalize="half")
        self.assertEqual((model.classes, model.image_shape), (list("abcde"), (3, 32, 32)))
        images = torch.rand(2, 3, 32, 32)
        self.assertEqual(model(images).shape, (2, 5))
        self.assertTrue(torch.compile(model, backend="eager")(images).equal(model(images)))

    def test_settings_and_pictures(self):
        one = sparsight.load(self.trained, "last", settings=["router.eval_k=1"])
        self.assertFalse(one(self.images).equal(sparsight.load(self.trained)(self.images)))
        picture = (self.images[0] * 255).round().to(torch.uint8)
        self.assertTrue(one.preprocess(picture).equal(self.images[0]))
        self.assertEqual(one.preprocess(picture.repeat(1, 3, 2)).shape, (3, 16, 16))
        try:
            from PIL import Image
        except ImportError:
            return
        self.assertTrue(one.preprocess(Image.fromarray(picture.permute(1, 2, 0).numpy())).equal(self.images[0]))

    def test_refusals(self):
        for error, message, call in (
                (RuntimeError, "no such file", lambda: sparsight.load(self.path / "nowhere")),
                (ValueError, "best.*last", lambda: sparsight.load(self.trained, "newest")),
                (ValueError, "did you mean", lambda: sparsight.load(self.trained, settings=["router.evalk=1"])),
                (RuntimeError, "shape|pixels", lambda: sparsight.load(self.trained)(self.images[:, :1])),
                (ValueError, "uint8", lambda: sparsight.load(self.trained).preprocess(self.images[0])),
                (RuntimeError, "run on the CPU", lambda: sparsight.load(self.trained).to("meta"))):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                call()
        self.program("export", self.trained, "--format", "sparsight", "--out", self.path / "frozen.sparsight")
        with self.assertRaisesRegex(RuntimeError, "frozen model, which has no gradients"):
            sparsight.load(self.path / "frozen.sparsight")


if __name__ == "__main__":
    unittest.main()
