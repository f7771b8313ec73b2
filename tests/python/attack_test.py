"""sparsight.attack on PyTorch models: against `sparsight attack` on the same weights, and where the answer is known."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import support  # noqa: F401  (finds the built package)
import torch
from torch import nn

import sparsight

PROGRAM = os.environ.get("SPARSIGHT_PROGRAM", str(support.BUILD / "cli/sparsight"))
EPS = 8 / 255
CONFIG = """
[data]
name = "glyphs"
side = 16
classes = 5
super_classes = 0
domains = ["clean"]
train = 600
validation = 1
test = 60
[model]
name = "mlp"
width = 24
depth = 0
[train]
epochs = 12
keep = "last"
[loader]
batch = 20
[optimizer]
lr = 0.01
"""


class Mlp(nn.Module):
    """The program's "mlp" of depth 0, from its weights."""

    def __init__(self, weights):
        super().__init__()
        self.weights = nn.ParameterDict({name.replace(".", "_"): nn.Parameter(w) for name, w in weights.items()})

    def forward(self, x):
        w = self.weights
        x = nn.functional.linear(x.flatten(1), w["embed_weight"], w["embed_bias"])
        x = nn.functional.layer_norm(x, x.shape[-1:], w["norm_weight"], w["norm_bias"], 1e-6)
        return nn.functional.linear(x, w["head_weight"], w["head_bias"])


def read_tensors(path):
    """The tensors of a safetensors file of float32 and int64."""
    content = pathlib.Path(path).read_bytes()
    size = int.from_bytes(content[:8], "little")
    types = {"F32": torch.float32, "I64": torch.int64, "F64": torch.float64}
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] in types:
            first, last = entry["data_offsets"]
            values = torch.frombuffer(bytearray(content[8 + size + first:8 + size + last]), dtype=types[entry["dtype"]])
            tensors[name] = values.view(entry["shape"])
    return tensors


class AgainstTheProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "config.toml").write_text(CONFIG)
        cls.program("train", cls.path / "config.toml", "--out", cls.path / "run")
        weights = read_tensors(cls.path / "run/checkpoints/last.safetensors")
        cls.model = Mlp({name: w for name, w in weights.items() if "/" not in name}).eval()
        clean = cls.attacked("fgsm", "0")
        cls.images, cls.labels = clean["pixels"], clean["label"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def program(cls, *words):
        done = subprocess.run([PROGRAM, *map(str, words), "--quiet"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @classmethod
    def attacked(cls, attack, eps, *more):
        out = cls.path / f"{attack}_{eps}".replace("/", "_")
        cls.program("attack", cls.path / "run", "--attack", attack, "--eps", eps, "--seed", 3, "--out", out, *more)
        return read_tensors(out / "adversarial.safetensors")

    def test_the_same_records(self):
        settings = {"fgsm": {}, "pgd": {"steps": 5}, "apgd": {"steps": 10}, "square": {"queries": 60}, "fab": {"steps": 5}}
        for attack, given in settings.items():
            with self.subTest(attack):
                theirs = self.attacked(attack, "8/255", *[f"--set=attack.{key}={value}" for key, value in given.items()])
                ours = sparsight.attack(self.model, self.images, self.labels, "8/255", attack, seed=3, **given)
                self.assertTrue(ours.stage.equal(theirs["stage"]))
                apart = (ours.images - theirs["pixels"]).abs()
                self.assertLess(apart.gt(1e-5).double().mean().item(), 0.01)
                self.assertGreater(ours.clean_accuracy, ours.robust_accuracy)

    def test_autoattack(self):
        theirs = self.attacked("autoattack", "8/255")
        ours = sparsight.attack(self.model, self.images, self.labels, eps=EPS, seed=3)
        self.assertTrue(ours.stage.equal(theirs["stage"]))
        self.assertEqual([stage["name"] for stage in ours.report["stages"]], ["apgd-ce", "apgd-t", "fab-t", "square"])
        result = json.loads((self.path / "autoattack_8_255/result.json").read_text())
        self.assertAlmostEqual(result["robust_accuracy"]["value"], ours.robust_accuracy)


class LinearModel(unittest.TestCase):
    """A linear classifier is robust where its margin exceeds epsilon times the dual norm of the difference of weights."""

    def setUp(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(25, 4)).double().eval()
        self.images = 0.3 + 0.4 * torch.rand(200, 1, 5, 5, dtype=torch.float64)  # far from the range of pixels
        self.labels = self.model(self.images).argmax(1).roll(1).where(torch.arange(200) % 10 == 0,
                                                                      self.model(self.images).argmax(1))

    def bound(self, norm):
        weight, logits = self.model[1].weight.detach(), self.model(self.images).detach()
        own = logits.gather(1, self.labels[:, None])
        dual = (weight[self.labels][:, None] - weight).norm(p=1 if norm == "linf" else 2, dim=2)
        return ((own - logits) / dual.clamp_min(1e-12)).scatter(1, self.labels[:, None], float("inf")).min(1).values

    def test_autoattack_is_exact(self):
        for norm in ("linf", "l2"):
            bound = self.bound(norm)
            eps = bound[bound > 0].median().item()
            with self.assertWarnsRegex(UserWarning, "only 3"):  # targets
                found = sparsight.attack(self.model, self.images, self.labels, eps, norm=norm, batch=64)
            sure = (bound - eps).abs() > 0.02 * eps
            self.assertGreater((sure & (bound > eps)).sum(), 20)
            self.assertGreater((sure & (bound < eps) & (bound > 0)).sum(), 20)
            self.assertTrue(found.robust[sure].equal((bound > eps)[sure]))
            self.assertTrue(found.clean.equal(bound > 0))
            moved = (found.images - self.images).flatten(1)
            size = moved.abs().amax(1) if norm == "linf" else moved.norm(dim=1)
            self.assertLessEqual(size.max().item(), eps * (1 + 1e-9))
            self.assertTrue(self.model(found.images).argmax(1).eq(self.labels).equal(found.robust))


    def test_fab_says_how_far(self):
        for norm in ("linf", "l2"):
            bound = self.bound(norm)
            right = bound > 0
            eps = bound[right].median().item()
            found = sparsight.attack(self.model, self.images, self.labels, eps, "fab", norm=norm, steps=20, distances=True)
            self.assertTrue(found.distance.eq(0).equal(~right))
            self.assertTrue((found.distance >= bound * (1 - 1e-9))[right].all())
            self.assertTrue((found.distance <= bound * 1.06)[right].all())
            self.assertEqual(found.report["distances"]["found"], right.sum().item())
            self.assertAlmostEqual(found.report["distances"]["quantiles"]["median"], eps, delta=0.07 * eps)
            near = sparsight.attack(self.model, self.images, self.labels, eps, "fab", norm=norm, steps=20)
            self.assertTrue(near.distance.isinf().equal(right & near.robust))
        self.assertIsNone(sparsight.attack(self.model, self.images, self.labels, eps, "fgsm").distance)

    def test_the_l1_norm_bounds_the_sum_of_changes(self):
        clean = self.model(self.images).argmax(1).eq(self.labels)
        for attack in ("pgd", "apgd", "fab"):
            found = sparsight.attack(self.model, self.images, self.labels, 0.5, attack, norm="l1")
            self.assertLessEqual((found.images - self.images).abs().flatten(1).sum(1).max().item(), 0.5 * (1 + 1e-9))
            self.assertGreater(found.robust.sum(), 0)
            self.assertLess(found.robust.sum(), clean.sum())


class Targeted(unittest.TestCase):
    """Logits (0.3, 0.1 + 2 d5, 4 d10), d = x - 0.5: a grey image is of class 0, 0.1 from class 1, 0.075 from class 2."""
    ATTACKS = {"fgsm": {"loss": "margin"}, "pgd": {"steps": 10, "loss": "margin"},
               "apgd": {"steps": 10, "loss": "margin"}, "fab": {"steps": 10}, "square": {"queries": 400}}

    def setUp(self):
        self.grey = torch.full((3, 1, 4, 4), 0.5, dtype=torch.float64)

    @staticmethod
    def model(x):
        d = x.flatten(1) - 0.5
        return torch.stack([0 * d[:, 0] + 0.3, 0.1 + 2 * d[:, 5], 4 * d[:, 10]], 1)

    def attacked(self, labels, eps, attack, target, **settings):
        return sparsight.attack(self.model, self.grey, labels, eps, attack, target=target, seed=3, **settings)

    def test_the_smallest_perturbation_is_known(self):
        for attack, settings in self.ATTACKS.items():
            for target, smallest in ((1, 0.1), (2, 0.075)):
                with self.subTest(attack, target=target):
                    below = self.attacked([0, 0, 0], 0.98 * smallest, attack, target, **settings)
                    above = self.attacked([0, 0, 0], 1.07 * smallest, attack, target, **settings)
                    self.assertEqual((below.success_rate, above.success_rate), (0, 1))
                    self.assertTrue(self.model(above.images).argmax(1).eq(target).all())
                    self.assertTrue(above.stage.eq(0).all() and below.stage.eq(-1).all())
                    self.assertTrue(above.target.eq(target).all())

    def test_a_target_for_each_image(self):
        targets = torch.tensor([1, 2, 0])  # the last one is the label: left out, and as it was
        found = self.attacked([0, 0, 0], 0.107, "pgd", targets, **self.ATTACKS["pgd"])
        self.assertTrue(found.target.equal(targets))
        self.assertTrue(self.model(found.images).argmax(1).equal(targets))
        self.assertEqual(found.stage.tolist(), [0, 0, -1])
        self.assertTrue(found.images[2].equal(self.grey[2]))
        self.assertEqual((found.report["success_rate"]["count"], found.report["success_rate"]["of"]), (2, 2))
        self.assertEqual(found.report["target"]["left_out"], 1)
        self.assertAlmostEqual(found.robust_accuracy, 1 / 3)
        self.assertIn("at the target 100.0%", repr(found))

    def test_rules_follow_from_image_and_seed_alone(self):
        torch.manual_seed(5)
        images, labels = torch.rand(30, 1, 4, 4), torch.arange(30) % 6
        model = nn.Sequential(nn.Flatten(), nn.Linear(16, 6)).eval()
        for target in ("random", "least_likely"):
            few, many = (sparsight.attack(model, images, labels, "8/255", "fgsm", target=target, batch=batch)
                         for batch in (4, 30))
            self.assertTrue(few.target.equal(many.target))
            self.assertFalse(few.target.eq(labels).any())
        wrong = model(images).detach().scatter(1, labels[:, None], float("inf"))
        self.assertTrue(many.target.equal(wrong.argmin(1)))
        other = sparsight.attack(model, images, labels, "8/255", "fgsm", target="random", seed=1)
        self.assertFalse(other.target.equal(
            sparsight.attack(model, images, labels, "8/255", "fgsm", target="random").target))
        self.assertIsNone(sparsight.attack(model, images, labels, "8/255", "fgsm").target)

    def test_untargeted_success(self):
        found = sparsight.attack(self.model, self.grey, [0, 0, 1], 0.08, "fab", steps=10)
        self.assertEqual((found.clean_accuracy, found.robust_accuracy, found.success_rate), (2 / 3, 0, 1))

    def test_refusals(self):
        def refuses(message, target, attack="pgd", labels=(0, 0, 0)):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                self.attacked(list(labels), 0.1, attack, target)
        refuses("autoattack is untargeted", 1, "autoattack")
        refuses("autoattack is untargeted", torch.tensor([1, 1, 1]), "autoattack")
        refuses("apgd_t cannot be targeted", "random", "apgd_t")
        refuses("there is no class 3: the numbers of the 3 classes are 0 to 2", 3)
        refuses("there is no class -1", -1)
        refuses("target must be 0 to 2", torch.tensor([1, 2, 3]))
        refuses("target must be 0 to 2", [1, -1, 0])
        refuses(r"target must be \[B\] int64 with B = 3", torch.tensor([1]))
        refuses(r"target must be \[B\] int64 with B = 3", torch.tensor(1))
        refuses("the label of every image is its target", 0)
        refuses("the label of every image is its target", torch.tensor([2, 1, 0]), labels=(2, 1, 0))
        for target in ("cat", "", "1", 1.5, True, torch.rand(3), torch.tensor([True, False, True]), float("nan")):
            refuses("target must be None, the number of a class", target)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context, grad):
        return 2 * grad * context.saved_tensors[0]


class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layer, self.head = nn.Linear(12, 16), sparsight.MoEMLP(16, 32, experts=4, k=2), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.layer(Square.apply(self.embed(x.flatten(2)))).mean(1))


class Models(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.images, self.labels = torch.rand(9, 6, 3, 4), torch.arange(9) % 4
        self.linear = nn.Sequential(nn.Flatten(), nn.Linear(72, 4)).eval()

    def test_routed_with_python_derivatives(self):
        model = Routed().eval()
        before = [p.clone() for p in model.parameters()]
        labels = model(self.images).argmax(1)
        found = sparsight.attack(model, self.images, labels, 0.4, "pgd", steps=9)
        self.assertEqual(found.clean_accuracy, 1)
        own = model(self.images).gather(1, labels[:, None]) - model(found.images).gather(1, labels[:, None])
        self.assertGreater(own.min().item(), 0)
        self.assertTrue(all(p.grad is None and p.equal(b) for p, b in zip(model.parameters(), before)))

    def test_a_model_that_changes_its_input_in_place(self):
        def centred(x, in_place):
            return self.linear(x.sub_(0.5) if in_place else x - 0.5)
        for attack, settings in (("pgd", {"steps": 3}), ("square", {"queries": 20})):
            a, b = (sparsight.attack(lambda x, i=in_place: centred(x, i), self.images, self.labels, attack=attack, **settings)
                    for in_place in (True, False))
            self.assertTrue(a.images.equal(b.images))
            self.assertLessEqual((a.images - self.images).abs().max().item(), 8 / 255 + 1e-6)

    def test_a_graph_that_outlives_the_attack(self):
        kept = []

        def keeping(x):
            kept.append(x - 0.1)
            return self.linear(x)
        sparsight.attack(keeping, self.images, self.labels, attack="fgsm")
        for graph in kept:
            if graph.requires_grad:
                graph.sum().backward()

    def test_output_objects_and_outer_no_grad(self):
        class Output:
            def __init__(self, logits):
                self.logits = logits
        with torch.no_grad():
            a = sparsight.attack(lambda x: Output(self.linear(x)), self.images, self.labels, attack="fgsm")
            b = sparsight.attack(self.linear, self.images, self.labels.tolist(), attack="fgsm")
        self.assertTrue(a.images.equal(b.images))

    def test_an_attack_inside_an_attacked_model(self):
        def purified(x):
            return self.linear(sparsight.attack(self.linear, x, self.labels[:len(x)], "1/255", "fgsm").images)
        found = sparsight.attack(purified, self.images, self.labels, attack="square", queries=3)
        self.assertEqual(len(found.robust), 9)

    def test_the_models_exceptions_pass(self):
        def broken(x):
            raise KeyboardInterrupt("stop")
        with self.assertRaisesRegex(KeyboardInterrupt, "stop"):
            sparsight.attack(broken, self.images, self.labels)
        found = sparsight.attack(self.linear, self.images, self.labels, attack="fgsm")  # works afterwards
        self.assertEqual(found.stage.shape, (9,))

    def test_refusals(self):
        def refuses(error, message, model=self.linear, images=self.images, labels=self.labels, **more):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                sparsight.attack(model, images, labels, **more)
        refuses(ValueError, 'did you mean "pgd"', attack="pdg")
        refuses(ValueError, "attack.stepss", attack="pgd", stepss=3)
        refuses(ValueError, "steps", attack="pgd", steps=0)
        refuses(ValueError, "eps", eps="8/0")
        refuses(ValueError, "must be linf, l2 or l1", norm="l3")
        refuses(ValueError, "square does not take the norm l1", attack="square", norm="l1")
        refuses(ValueError, r"labels must be \[B\] int64", labels=self.labels[:4])
        refuses(ValueError, "labels must be integers", labels=self.labels.double())
        refuses(ValueError, "images must be a tensor", images=self.images.numpy())
        refuses(ValueError, "seed", seed=-1)
        refuses(ValueError, "batch", batch=0)
        refuses(RuntimeError, "range|0..1", images=self.images * 255)
        refuses(ValueError, "labels must be 0 to 3", labels=self.labels + 100)
        refuses(RuntimeError, r"logits \[B,classes\]", model=lambda x: x)
        refuses(TypeError, "logits as a tensor", model=lambda x: None)
        refuses(RuntimeError, "no gradient with respect to the pixels", model=lambda x: self.linear(x).detach())
        refuses(RuntimeError, "do not depend on the pixels", model=lambda x: self.linear(x.detach().round()))
        with self.assertRaisesRegex(RuntimeError, "has no model"):
            sparsight.ops.attack("{}", self.images, self.labels)
        with self.assertRaisesRegex(RuntimeError, "model of an attack alone"):
            sparsight.ops.attacked_pixels()
        with self.assertRaisesRegex(RuntimeError, "model of an attack alone"):
            sparsight.ops.answer_attack(self.images)

    def test_training_mode_is_named(self):
        model = nn.Sequential(nn.Flatten(), nn.Linear(72, 4))
        with self.assertWarnsRegex(UserWarning, "training mode"):
            sparsight.attack(model, self.images, self.labels, attack="fgsm")


if __name__ == "__main__":
    unittest.main()
