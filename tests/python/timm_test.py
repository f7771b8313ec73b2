"""Puts MoE layers into existing timm models: dense weights kept, balance losses collected."""
import copy
import pathlib
import re
import unittest

import support  # noqa: F401  (finds the built package)
import peer_timm
import torch
from torch import nn

import sparsight

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


class Mlp(nn.Module):
    """The attributes of timm's Mlp."""

    def __init__(self, dim, hidden, act=nn.GELU, bias=True):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(dim, hidden, bias), act(), nn.Linear(hidden, dim, bias)
        self.norm = nn.Identity()

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({"mlp": Mlp(16, 32)}) for _ in range(3))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for block in self.blocks:
            x = x + block["mlp"](x)
        return self.head(x.mean(1))


class FromMlp(unittest.TestCase):
    def test_the_new_layer_computes_what_the_mlp_did(self):
        x = torch.randn(2, 5, 16)
        for act in (nn.GELU, nn.ReLU, nn.SiLU, lambda: nn.GELU(approximate="tanh")):
            for bias in (True, False):
                mlp = Mlp(16, 32, act, bias).eval()
                for options in ({"k": 2}, {"k": 1}, {"k": 3, "router": "cosine"}):
                    layer = sparsight.MoEMLP.from_mlp(mlp, experts=4, **options)
                    torch.testing.assert_close(layer(x), mlp(x), rtol=1e-5, atol=1e-6)

    def test_without_renormalized_gates_the_output_is_scaled_by_their_sum(self):
        mlp, x = Mlp(16, 32).eval(), torch.randn(2, 5, 16)
        layer = sparsight.MoEMLP.from_mlp(mlp, experts=4, k=2, renormalize=False)
        y, routing = layer(x, return_routing=True)
        torch.testing.assert_close(y, mlp(x) * routing.gate.view(2, 5, 2).sum(2, keepdim=True), rtol=1e-5, atol=1e-6)

    def test_other_forms_are_errors(self):
        gated, tanh, normed, narrow = nn.Linear(4, 4), Mlp(4, 8, nn.Tanh), Mlp(4, 8), Mlp(4, 8)
        normed.norm = nn.LayerNorm(8)
        narrow.fc2 = nn.Linear(8, 3)
        for mlp, words in ((gated, "fc1 and fc2"), (tanh, "got the activation Tanh"), (normed, "norm"), (narrow, "wide")):
            with self.assertRaisesRegex(TypeError, words):
                sparsight.MoEMLP.from_mlp(mlp, experts=2)


class Collect(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.model = Blocks()
        for i in (0, 2):
            self.model.blocks[i]["mlp"] = sparsight.MoEMLP.from_mlp(self.model.blocks[i]["mlp"], experts=4, k=2)

    def test_the_loss_is_the_sum_over_the_layers(self):
        x = torch.randn(3, 5, 16)
        with sparsight.collect_routings(self.model) as routings:
            self.model(x)
        self.assertEqual(list(routings.by_layer), ["blocks.0.mlp", "blocks.2.mlp"])
        each = [routing.loss for layer in routings.by_layer.values() for routing in layer]
        self.assertEqual(len(each), 2)
        self.assertGreater(routings.loss.item(), 0)
        torch.testing.assert_close(routings.loss, each[0] + each[1])
        self.model(x)  # outside: nothing is collected
        self.assertEqual([len(layer) for layer in routings.by_layer.values()], [1, 1])

    def test_the_losses_reach_the_routers(self):
        with sparsight.collect_routings(self.model) as routings:
            self.model(torch.randn(3, 5, 16))
        routings.loss.backward()
        for i in (0, 2):
            self.assertGreater(self.model.blocks[i]["mlp"].router.weight.grad.abs().sum().item(), 0)

    def test_guided_losses_are_averaged_over_the_layers(self):
        for i in (0, 2):
            layer = sparsight.MoEMLP(16, 32, 4, router="per_image", losses={"superclass": 0.5, "vmoe_importance": 0.1})
            self.model.blocks[i]["mlp"] = layer
            self.assertEqual(layer.router.averaged_losses, ("superclass",))
            nn.init.normal_(layer.router.weight)
        target = torch.eye(4)[:3]
        layers = [self.model.blocks[i]["mlp"] for i in (0, 2)]
        with sparsight.collect_routings(self.model) as routings:
            for layer in layers:
                layer(torch.randn(3, 5, 16), target=target)
        each = [routing.losses for layer in routings.by_layer.values() for routing in layer]
        guided = (each[0]["superclass"] + each[1]["superclass"]) / 2
        self.assertGreater((each[0]["superclass"] - each[1]["superclass"]).abs().item(), 1e-3)
        balance = each[0]["vmoe_importance"] + each[1]["vmoe_importance"]
        torch.testing.assert_close(routings.loss, 0.5 * guided + 0.1 * balance)

    def test_mistakes_are_errors_and_an_exception_ends_the_collection(self):
        with self.assertRaisesRegex(ValueError, "no sparsight.MoEMLP"):
            with sparsight.collect_routings(nn.Linear(2, 2)):
                pass
        with sparsight.collect_routings(self.model):
            with self.assertRaisesRegex(RuntimeError, "already"):
                with sparsight.collect_routings(self.model):
                    pass
        with self.assertRaises(KeyError):
            with sparsight.collect_routings(self.model):
                raise KeyError
        with sparsight.collect_routings(self.model):
            copied = copy.deepcopy(self.model)
        copied(torch.randn(1, 5, 16))


class Timm(unittest.TestCase):
    def test_the_page_trains_an_unmodified_timm_model(self):
        if peer_timm.import_timm() is None:
            self.skipTest("needs timm (pip install timm==1.0.31)")
        page = re.search(r"^```py\n(.*?)^```", PAGE.read_text(), re.S | re.M).group(1)
        page = page.replace('"vit_small_patch16_224", pretrained=True', '"vit_tiny_patch16_224", img_size=32')
        loader = [(torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))) for _ in range(2)]
        scope = {"loader": loader}
        exec(page, scope)
        self.assertEqual(scope["logits"].shape, (4, 10))
        self.assertGreater(scope["routings"].loss.item(), 0)


if __name__ == "__main__":
    unittest.main()
