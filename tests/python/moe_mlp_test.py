"""sparsight.MoEMLP: the whole layer against plain PyTorch, saving, types, padding, mistakes."""
import copy
import io
import pickle
import unittest

import support
import torch

import sparsight

B, S, D, F, E = 2, 6, 8, 12, 4


def plain_vmoe(layer, x):
    """The layer with V-MoE's router, in evaluation."""
    tokens = x.reshape(-1, D)
    gate, expert = (tokens @ layer.router.weight.T).softmax(1).topk(layer.router.per_token, dim=1)
    w = layer.experts
    return support.plain_moe(tokens, expert, gate, w.w1, w.b1, w.w2, w.b2, layer.activation).view_as(x)


class Layer(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def layer(self, *args, **options):
        layer = sparsight.MoEMLP(D, F, E, *args, **options)
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        return layer

    def test_equals_plain_pytorch(self):
        for dtype in (torch.float32, torch.float64):
            layer = self.layer(2, activation="silu").to(dtype).eval()
            x = torch.randn(B, S, D, dtype=dtype, requires_grad=True)
            tensors = [x, *layer.parameters()]
            y, plain = layer(x), plain_vmoe(layer, x)
            torch.testing.assert_close(y, plain, rtol=1e-4, atol=1e-5)
            upstream = torch.randn_like(y)
            for a, b in zip(torch.autograd.grad(y, tensors, upstream), torch.autograd.grad(plain, tensors, upstream)):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    def test_gradcheck(self):
        layer = self.layer(2).double()
        names = [name for name, _ in layer.named_parameters()]
        run = lambda x, *w: torch.func.functional_call(layer, dict(zip(names, w)), (x,), {"seed": 3})  # noqa: E731
        torch.autograd.gradcheck(run, (torch.randn(1, 3, D, dtype=torch.float64, requires_grad=True), *layer.parameters()))

    def test_takes_any_leading_shape(self):
        layer = self.layer().eval()
        x = torch.randn(2, 3, 5, D)
        y = layer(x)
        self.assertEqual(y.shape, x.shape)
        torch.testing.assert_close(layer(x.view(-1, D)), y.view(-1, D))
        self.assertTrue(torch.equal(layer(x.transpose(0, 1)), y.transpose(0, 1)))  # not contiguous
        self.assertEqual(layer(torch.randn(0, 5, D)).shape, (0, 5, D))

    def test_soft_moe_equals_plain_pytorch(self):
        layer = self.layer(router="soft_moe", slots=2, normalize=False)
        x, w = torch.randn(B, S, D), layer.experts
        logits = x @ layer.router.weight.T
        slots = logits.softmax(1).transpose(1, 2) @ x
        expert = (torch.arange(E * 2) // 2).repeat(B).unsqueeze(1)
        out = support.plain_moe(slots.reshape(-1, D), expert, torch.ones(B * E * 2, 1), w.w1, w.b1, w.w2, w.b2)
        torch.testing.assert_close(layer(x), logits.softmax(2) @ out.view(B, E * 2, D), rtol=1e-4, atol=1e-5)

    def test_every_router_trains_it(self):
        for name in sparsight.routers():
            with self.subTest(name):
                layer = self.layer(router=name, capacity=1.0)
                x = torch.randn(B, S, D, requires_grad=True)
                target = None if layer.router.soft else torch.full((B, E), 1 / E)
                y, routing = layer(x, return_routing=True, target=target)
                (y.square().sum() + routing.loss).backward()
                for tensor in (x, *layer.parameters()):
                    self.assertTrue(tensor.grad.isfinite().all())
                layer.post_step_update(routing)

    def test_state_has_the_names_of_the_librarys_checkpoints_and_survives(self):
        layer = self.layer(router="noisy_topk").eval()
        self.assertEqual(sorted(layer.state_dict()), ["experts.b1", "experts.b2", "experts.w1", "experts.w2",
                                                      "router.noise_weight", "router.weight"])
        x, other = torch.randn(B, S, D), sparsight.MoEMLP(D, F, E, router="noisy_topk").eval()
        other.load_state_dict(layer.state_dict())
        file = io.BytesIO()
        pickle.dump(layer, file)
        file.seek(0)
        for again in (other, copy.deepcopy(layer), pickle.load(file)):
            self.assertTrue(torch.equal(again(x), layer(x)))

    def test_types(self):
        layer = self.layer().eval()
        x = torch.randn(B, S, D)
        self.assertEqual(layer(x.bfloat16()).dtype, torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertTrue(torch.equal(layer(x), layer.forward(x)))
        half = copy.deepcopy(layer).bfloat16()
        torch.testing.assert_close(half(x.bfloat16()).float(), layer(x), rtol=0.1, atol=0.1)

    def test_inference_mode_may_come_first(self):
        for name in sparsight.routers():
            with self.subTest(name):
                layer, x = sparsight.MoEMLP(D + 2, F, E, router=name).eval(), torch.randn(B, S, D + 2)
                with torch.inference_mode():  # no other test has a router of this width
                    y = layer(x)
                    self.assertTrue(torch.equal(layer(x.clone()), y))
                self.assertTrue(torch.equal(layer(x), y))
                layer(x).sum().backward()

    def test_autocast_changes_nothing(self):
        for name in sparsight.routers():
            with self.subTest(name):
                layer, x = self.layer(router=name), torch.randn(B, S, D, requires_grad=True)
                results = []
                for enabled in (False, True):
                    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                        y, routing = layer(x, return_routing=True, seed=3)
                        of_half = layer(x.bfloat16(), seed=3)
                    self.assertEqual((y.dtype, of_half.dtype), (torch.float32, torch.bfloat16))
                    gradients = torch.autograd.grad(y.square().sum() + routing.loss, [x, *layer.parameters()],
                                                    materialize_grads=True)
                    results.append([y, routing.loss, of_half, *gradients])
                for a, b in zip(*results):
                    self.assertTrue(torch.equal(a, b))

    def test_padding_gets_nothing(self):
        valid = torch.ones(B, S, dtype=torch.bool)
        valid[1, 3:] = False
        for router in ("softmax_topk", "expert_choice", "soft_moe"):
            layer = self.layer(router=router)
            x = torch.randn(B, S, D).masked_fill(~valid[..., None], float("nan"))
            y = layer(x, valid=valid)
            self.assertEqual(y[1, 3:].abs().max(), 0)
            y.square().sum().backward()
            for parameter in layer.parameters():
                self.assertTrue(parameter.grad.isfinite().all())

    def test_padding_stays_0_beside_what_is_not_finite(self):
        valid = torch.ones(B, S, dtype=torch.bool)
        valid[1, 3:] = False
        for router in sparsight.routers():
            for wrong in (float("nan"), float("inf")):
                with self.subTest(router, wrong=wrong):
                    x = torch.randn(B, S, D)
                    x[1, 0, 0] = wrong
                    y = self.layer(router=router).eval()(x, valid=valid)
                    self.assertTrue((y[1, 3:] == 0).all())

    def test_initial_weights(self):
        """20 * 50 * 200 samples: their std is within 1 % of that of the distribution. U(-b, b) has the std b / sqrt(3),
        N(0, 1) truncated at ± 2 has .8796."""
        def made(init, dim=50, hidden=200):
            return sparsight.MoEMLP(dim, hidden, 20, init=init).experts

        stds = {"normal": (0.02, 0.02), "trunc_normal": (0.02 * 0.8796, 0.02 * 0.8796), "fan_in": (50**-0.5, 200**-0.5),
                "xavier_uniform": ((6 / 250 / 3)**0.5, (6 / 250 / 3)**0.5),
                "torch_linear": ((50 * 3)**-0.5, (200 * 3)**-0.5)}
        for init, expected in stds.items():
            with self.subTest(init):
                experts = made(init)
                for weight, bias, std in zip((experts.w1, experts.w2), (experts.b1, experts.b2), expected):
                    self.assertAlmostEqual(weight.std().item() / std, 1, delta=0.01)
                    if init == "torch_linear":
                        self.assertAlmostEqual(bias.std().item() / std, 1, delta=0.1)
                    else:
                        self.assertEqual(bias.abs().max(), 0)
        # By default the samples of torch.nn.init.normal_, w1 before w2.
        torch.manual_seed(3)
        layer = sparsight.MoEMLP(D, F, E, seed=1)
        torch.manual_seed(3)
        self.assertTrue(torch.equal(layer.experts.w1, torch.nn.init.normal_(torch.empty(E, D, F), std=0.02)))
        self.assertTrue(torch.equal(layer.experts.w2, torch.nn.init.normal_(torch.empty(E, F, D), std=0.02)))
        with self.assertRaisesRegex(ValueError, "init must be one of normal, trunc_normal, fan_in, .*, got 'fanin'"):
            sparsight.MoEMLP(D, F, E, init="fanin")
        with self.assertRaisesRegex(TypeError, "init must be"):
            sparsight.MoEMLP(D, F, E, init=0.02)

    def test_mistakes(self):
        with self.assertRaisesRegex(ValueError, "chooses 5 experts per token"):
            sparsight.MoEMLP(D, F, E, 5)
        with self.assertRaisesRegex(ValueError, "unknown activation"):
            sparsight.MoEMLP(D, F, E, activation="gleu")
        with self.assertRaisesRegex(ValueError, "give k to sparsight.Router"):
            sparsight.MoEMLP(D, F, E, 2, router=sparsight.Router("softmax_topk", D, E))
        with self.assertRaisesRegex(ValueError, "the router is for dim=8, experts=3"):
            sparsight.MoEMLP(D, F, E, router=sparsight.Router("softmax_topk", D, 3))
        with self.assertRaisesRegex(ValueError, "switch_top1 always chooses 1 expert"):
            sparsight.MoEMLP(D, F, E, 2, router="switch_top1")
        with self.assertRaisesRegex(ValueError, "unknown setting"):
            sparsight.MoEMLP(D, F, E, 2, router="soft_moe")  # has no k
        with self.assertRaisesRegex(ValueError, "hidden must be at least 1, got 0"):
            sparsight.MoEMLP(D, 0, E)
        with self.assertRaisesRegex(TypeError, "hidden must be an integer, got 12.0"):
            sparsight.MoEMLP(D, 12.0, E)
        for router in (None, sparsight.Router):
            with self.assertRaisesRegex(TypeError, "router must be one of sparsight.routers"):
                sparsight.MoEMLP(D, F, E, router=router)
        with self.assertRaisesRegex(RuntimeError, "tokens of width 9, the router was made for dim = 8"):
            self.layer()(torch.randn(B, S, D + 1))

    def test_forward_mode_is_refused(self):
        refused = self.assertRaisesRegex(RuntimeError, "no forward-mode derivative; use reverse mode")
        for router in ("softmax_topk", "soft_moe"):
            layer, x = self.layer(router=router), torch.randn(B, S, D)
            for enabled in (True, False):
                with torch.set_grad_enabled(enabled), refused:
                    torch.func.jvp(layer, (x,), (torch.ones_like(x),))
        layer = self.layer()
        w, routing = layer.experts, layer.router(x)
        with refused:
            torch.func.jvp(lambda w1: sparsight.moe_mlp(x.view(-1, D), routing.expert, routing.gate, w1, w.b1, w.w2, w.b2,
                                                        token=routing.token), (w.w1.detach(),), (torch.ones_like(w.w1),))


if __name__ == "__main__":
    unittest.main()
