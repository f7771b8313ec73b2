"""sparsight.mlp and sparsight.self_attention: against plain PyTorch, gradcheck, at ragged and empty sizes."""
import unittest

import support  # first: the path of the package
import dense_cases
import torch
import torch.nn.functional as F
from torch import nn

import sparsight


def plain_mlp(x, w1, b1, w2, b2, activation="gelu"):
    return F.linear(support.ACTIVATIONS[activation](F.linear(x, w1, b1)), w2, b2)


def plain_attention(qkv, heads):
    images, tokens, width = qkv.shape
    q, k, v = qkv.view(images, tokens, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    weight = (q @ k.transpose(-2, -1) * q.shape[-1]**-0.5).softmax(-1)
    return (weight @ v).transpose(1, 2).reshape(images, tokens, width // 3)


class Dense(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, ours, plain, inputs, **tolerance):
        wanted = [t for t in inputs if t is not None]
        y, expected = ours(*inputs), plain(*inputs)
        torch.testing.assert_close(y, expected, **tolerance)
        direction = torch.randn_like(expected)
        for a, b in zip(torch.autograd.grad(y, wanted, direction), torch.autograd.grad(expected, wanted, direction)):
            torch.testing.assert_close(a, b, **tolerance)

    def threads_agree(self, run):
        threads, results = torch.get_num_threads(), []
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            results.append(run())
        torch.set_num_threads(threads)
        for other in results[1:]:
            for a, b in zip(results[0], other):
                self.assertTrue(torch.equal(a, b))

    def test_mlp_equals_plain_pytorch(self):
        for activation in support.ACTIVATIONS:
            ours = lambda *args: sparsight.mlp(*args, activation)
            plain = lambda *args: plain_mlp(*args, activation)
            for bias in (True, False):
                self.check(ours, plain, dense_cases.mlp_tensors(bias=bias), rtol=1e-4, atol=1e-5)
                self.check(ours, plain, dense_cases.mlp_tensors(bias=bias, dtype=torch.float64))
        for shape, f in (((6,), 3), ((1, 65), 257), ((2, 197, 96), 384), ((0, 6), 4)):
            self.check(sparsight.mlp, plain_mlp, dense_cases.mlp_tensors(shape, f), rtol=1e-4, atol=2e-4)

    def test_attention_equals_plain_pytorch(self):
        for images, tokens, width, heads in ((2, 5, 6, 1), (1, 1, 8, 2), (3, 197, 48, 3), (2, 50, 35, 5), (0, 4, 8, 2)):
            qkv = torch.randn(images, tokens, 3 * width, requires_grad=True)
            ours, plain = (lambda t: sparsight.self_attention(t, heads)), (lambda t: plain_attention(t, heads))
            self.check(ours, plain, [qkv], rtol=1e-4, atol=1e-5)
            self.check(ours, plain, [qkv.detach().double().requires_grad_()])

    def test_gradcheck(self):
        for activation in ("gelu", "silu", "gelu_tanh"):
            torch.autograd.gradcheck(lambda *args: sparsight.mlp(*args, activation), dense_cases.mlp_tensors(f=4, dtype=torch.float64))
        torch.autograd.gradcheck(lambda t: sparsight.self_attention(t, 2),
                                 torch.randn(2, 3, 12, dtype=torch.float64, requires_grad=True))

    def test_threads_do_not_change_a_bit(self):
        inputs, qkv = dense_cases.mlp_tensors((4, 50, 64), 200), torch.randn(3, 50, 3 * 48, requires_grad=True)

        def run_mlp():
            y = sparsight.mlp(*inputs)
            return [y, *torch.autograd.grad(y.square().sum(), inputs)]

        def run_attention():
            y = sparsight.self_attention(qkv, 3)
            return [y, *torch.autograd.grad(y.square().sum(), [qkv])]
        self.threads_agree(run_mlp)
        self.threads_agree(run_attention)

    def test_only_what_needs_a_gradient_gets_one(self):
        x, w1, b1, w2, b2 = dense_cases.mlp_tensors()
        frozen = [t.detach() for t in (w1, b1, w2, b2)]
        expected = torch.autograd.grad(plain_mlp(x, *frozen).sum(), x)[0]
        torch.testing.assert_close(torch.autograd.grad(sparsight.mlp(x, *frozen).sum(), x)[0], expected, rtol=1e-4, atol=1e-5)
        sparsight.mlp(x.detach(), w1, frozen[1], frozen[2], frozen[3]).sum().backward()
        expected = torch.autograd.grad(plain_mlp(x.detach(), w1, *frozen[1:]).sum(), w1)[0]
        torch.testing.assert_close(w1.grad, expected, rtol=1e-4, atol=1e-5)

    def test_compiles_into_one_graph(self):
        layer = sparsight.MLP(6, 10)
        run = torch.compile(lambda x: sparsight.self_attention(layer(x).repeat(1, 1, 3), 2), backend="aot_eager", fullgraph=True)
        x = torch.randn(2, 5, 6, requires_grad=True)
        self.assertTrue(torch.equal(run(x), sparsight.self_attention(layer(x).repeat(1, 1, 3), 2)))
        run(x).sum().backward()
        self.assertEqual(x.grad.shape, x.shape)

    def test_a_module_shares_the_layers_of_an_mlp(self):
        plain = nn.Module()
        plain.fc1, plain.act, plain.fc2 = nn.Linear(6, 10), nn.GELU(approximate="tanh"), nn.Linear(10, 6)
        layer, x = sparsight.MLP.from_mlp(plain), torch.randn(4, 6)
        self.assertIs(layer.fc1.weight, plain.fc1.weight)
        torch.testing.assert_close(layer(x), plain.fc2(plain.act(plain.fc1(x))), rtol=1e-4, atol=1e-5)
        self.assertEqual(sorted(layer.state_dict()), ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"])
        plain.drop = nn.Dropout(0.1)
        with self.assertRaisesRegex(TypeError, "without dropout"):
            sparsight.MLP.from_mlp(plain)
        plain.drop, plain.norm = nn.Dropout(0.0), nn.LayerNorm(10)
        with self.assertRaisesRegex(TypeError, "without a norm"):
            sparsight.MLP.from_mlp(plain)

    def test_mistakes_are_named(self):
        x, w1, b1, w2, b2 = dense_cases.mlp_tensors()
        for inputs, message in [
            ((x[..., :5], w1, b1, w2, b2), r"needs x \[...,D\] with D = 6, got \[3, 5, 5\]"),
            ((x, w2, b1, w2, b2), r"needs w1 \[F,D\] and w2 \[D,F\]"),
            ((x, w1, b2, w2, b2), r"needs b1 \[10\], got \[6\]"),
            ((x.double(), w1, b1, w2, b2), "one type and device"),
        ]:
            with self.assertRaisesRegex(RuntimeError, message):
                sparsight.mlp(*inputs)
        with self.assertRaisesRegex(ValueError, 'unknown activation "gleu"; did you mean "gelu"'):
            sparsight.mlp(x, w1, b1, w2, b2, "gleu")
        with self.assertRaisesRegex(RuntimeError, r"with 4 heads needs qkv \[B,S,3D\] where D is a multiple of the heads"):
            sparsight.self_attention(torch.randn(2, 3, 18), 4)
        with self.assertRaisesRegex(RuntimeError, "floating type"):
            sparsight.self_attention(torch.ones(2, 3, 12, dtype=torch.int64), 2)
        qkv = torch.randn(2, 3, 12, requires_grad=True)
        for y, of in ((sparsight.mlp(x, w1, b1, w2, b2), x), (sparsight.self_attention(qkv, 2), qkv)):
            with self.assertRaisesRegex(RuntimeError, "no second derivative"):
                torch.autograd.grad(y.sum(), of, create_graph=True)


if __name__ == "__main__":
    unittest.main()
