"""torch.ops.sparsight.moe_mlp and the functions around it: against plain PyTorch, gradcheck, unusual layouts with opcheck."""
import unittest

import support
import torch

import sparsight


def case(n=7, e=4, k=2, d=6, f=10, dtype=torch.float32, bias=True):
    x = torch.randn(n, d, dtype=dtype, requires_grad=True)
    gate, expert = torch.randn(n, e).softmax(1).topk(k, dim=1)
    return [x, expert, gate.to(dtype).requires_grad_(), *support.experts(e, d, f, bias, dtype)]


def gradients(y, inputs):
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    return torch.autograd.grad(y.square().sum(), wanted)


class Experts(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, args, activation="gelu", **tolerance):
        y, plain = sparsight.moe_mlp(*args, activation), support.plain_moe(*args, activation)
        torch.testing.assert_close(y, plain, **tolerance)
        for a, b in zip(gradients(y, args), gradients(plain, args)):
            torch.testing.assert_close(a, b, **tolerance)

    def test_equal_plain_pytorch(self):
        for activation in support.ACTIVATIONS:
            for bias in (True, False):
                self.check(case(bias=bias), activation, rtol=1e-4, atol=1e-5)
                self.check(case(bias=bias, dtype=torch.float64), activation)
        self.check(case(n=197, e=8, d=64, f=96), rtol=1e-4, atol=1e-4)

    def test_one_expert_takes_all_and_the_others_get_a_gradient_of_zero(self):
        args = case()
        args[1] = torch.full((7, 1), 2)
        args[2] = torch.ones(7, 1, requires_grad=True)
        self.check(args, rtol=1e-4, atol=1e-5)
        w1_grad = gradients(sparsight.moe_mlp(*args), args)[2]
        self.assertEqual(w1_grad[[0, 1, 3]].abs().max(), 0)

    def test_dropped_assignments_are_left_out(self):
        args = case()
        args[1][0] = -1  # token 0 has no expert
        args[1][3, 1] = -1
        self.check(args, rtol=1e-4, atol=1e-5)
        self.assertEqual(sparsight.moe_mlp(*args)[0].abs().max(), 0)
        full = case()
        kept = torch.rand(7, 2) < 0.6
        masked = [*full[:1], full[1].masked_fill(~kept, -1), *full[2:]]
        torch.testing.assert_close(sparsight.moe_mlp(*full, kept=kept), sparsight.moe_mlp(*masked))

    def test_assignments_may_name_their_tokens(self):
        x, expert, gate, *weights = case()
        token = torch.arange(7).repeat_interleave(2)
        mixed = torch.randperm(14)
        y = sparsight.moe_mlp(x, expert.reshape(-1)[mixed], gate.reshape(-1)[mixed], *weights, token=token[mixed])
        torch.testing.assert_close(y, sparsight.moe_mlp(x, expert, gate, *weights), rtol=1e-5, atol=1e-6)

    def test_no_tokens(self):
        args = case(n=0)
        y = sparsight.moe_mlp(*args)
        self.assertEqual(y.shape, (0, 6))
        for gradient in gradients(y, args):
            self.assertEqual(gradient.abs().sum(), 0)

    def test_strides_do_not_matter(self):
        args = case()
        strided = [t if t is None else torch.stack([t.detach(), t.detach()], dim=-1)[..., 0] for t in args]
        for t, s in zip(args, strided):
            s.requires_grad_(t.requires_grad)
        self.assertFalse(strided[0].is_contiguous())
        self.assertTrue(torch.equal(sparsight.moe_mlp(*args), sparsight.moe_mlp(*strided)))
        for a, b in zip(gradients(sparsight.moe_mlp(*args), args), gradients(sparsight.moe_mlp(*strided), strided)):
            self.assertTrue(torch.equal(a, b))

    def test_threads_do_not_change_a_bit(self):
        args, threads = case(n=197, e=8, d=64, f=96), torch.get_num_threads()
        results = []
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            y = sparsight.moe_mlp(*args)
            results.append([y, *gradients(y, args)])
        torch.set_num_threads(threads)
        for other in results[1:]:
            for a, b in zip(results[0], other):
                self.assertTrue(torch.equal(a, b))

    def test_gradcheck(self):
        args = case(n=5, d=3, f=4, dtype=torch.float64)
        args[1][2, 0] = -1
        x, expert, gate, *weights = args
        for activation in ("gelu", "silu", "gelu_tanh"):
            torch.autograd.gradcheck(
                lambda x, gate, *weights: sparsight.moe_mlp(x, expert, gate, *weights, activation), (x, gate, *weights))

    def test_opcheck(self):
        for dtype in (torch.float32, torch.float64):
            args = case(dtype=dtype)
            dropped = [args[0], args[1].masked_fill(torch.rand(7, 2) < 0.3, -1), *args[2:]]
            token = torch.arange(7).repeat_interleave(2)
            tries = [(args, {}), (dropped, {"activation": "silu"}), (case(n=0, dtype=dtype), {}), (case(bias=False), {}),
                     ([args[0], args[1].reshape(-1), args[2].detach().reshape(-1).requires_grad_(), *args[3:]],
                      {"token": token, "kept": token < 5})]
            for inputs, options in tries:
                torch.library.opcheck(sparsight.ops.moe_mlp.default, inputs, options)

    def test_mistakes_are_named(self):
        args = case()
        wrong = lambda i, value: [*args[:i], value, *args[i + 1:]]
        for inputs, message in [
            (wrong(0, torch.randn(7, 5)), "tokens of width 5 do not fit experts of width 6"),
            (wrong(1, torch.full((7, 2), 4)), "expert must lie between -1 and 3, got 4 to 4"),
            (wrong(1, args[1].int()), "expert must be int64"),
            (wrong(1, args[1][:3]), "gate must be floating-point numbers of the shape of expert"),
            (wrong(4, torch.randn(4, 9)), "expert bias b1 needs shape [4, 10], got [4, 9]"),
            (wrong(0, args[0].double()), "one type and device"),
        ]:
            with self.assertRaisesRegex(RuntimeError, message.replace("[", "\\[")):
                sparsight.moe_mlp(*inputs)
        with self.assertRaisesRegex(RuntimeError, "token must lie between 0 and 6"):
            sparsight.moe_mlp(*args, token=torch.full((14,), 7))
        with self.assertRaisesRegex(ValueError, 'unknown activation "gleu"; did you mean "gelu"'):
            sparsight.moe_mlp(*args, "gleu")
        with self.assertRaisesRegex(RuntimeError, "no second derivative"):
            torch.autograd.grad(sparsight.moe_mlp(*args).sum(), args[0], create_graph=True)


if __name__ == "__main__":
    unittest.main()
