"""MoEMLP.pack() and its operators: the outputs of packed experts, and when they raise errors."""
import copy
import pickle
import unittest

import support
import torch

import sparsight

B, S, D, F, E = 2, 6, 24, 40, 4


def layer(**options):
    made = sparsight.MoEMLP(D, F, E, **options).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def packed_call(type="bf16"):
    w1, b1, w2, b2 = (w.detach() for w in support.experts(E, D, F))
    tensors, order = sparsight.ops.pack_moe_mlp(w1, b1, w2, b2, type)
    expert = torch.randint(0, E, (S, 2))
    return [torch.randn(S, D), expert, torch.rand(S, 2), tensors, type, order, F]


class Packed(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_fp32_gives_the_same_bits_and_fewer_bits_nearly(self):
        for options in ({"k": 2}, {"k": 1, "bias": False, "activation": "relu"}, {"router": "expert_choice"},
                        {"router": "soft_moe"}):
            made, x = layer(**options), torch.randn(B, S, D)
            with torch.no_grad():
                y = made(x)
                self.assertTrue(torch.equal(made.pack()(x), y), options)
                # 8 bits of a weight, or 7 of the largest one of its channel
                for type, tolerance in (("bf16", 0.01), ("int8", 0.03)):
                    error = (made.pack(type)(x) - y).norm() / y.norm()
                    self.assertLess(error, tolerance, (options, type))
                    self.assertGreater(error, 1e-5, (options, type))
                self.assertTrue(torch.equal(made.unpack()(x), y), options)

    def test_bf16_computes_with_the_rounded_weights(self):
        made, x = layer(k=2), torch.randn(B, S, D)
        rounded = copy.deepcopy(made)
        for w in (rounded.experts.w1, rounded.experts.w2):
            w.data = w.data.bfloat16().float()
        with torch.inference_mode():
            torch.testing.assert_close(made.pack("bf16")(x), rounded(x), rtol=1e-3, atol=2e-2)

    def test_there_are_no_gradients(self):
        made, x = layer().pack(), torch.randn(B, S, D)
        with self.assertRaisesRegex(RuntimeError, "packed for inference and have no gradients: call the layer under"):
            made(x)
        call = packed_call()
        call[0].requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "packed experts have no gradients"):
            sparsight.ops.packed_moe_mlp(*call)
        made.requires_grad_(False)
        self.assertFalse(made(x).requires_grad)

    @torch.no_grad()
    def test_no_answer_comes_from_weights_of_before(self):
        made, x = layer(), torch.randn(B, S, D)
        made.pack().experts.w2.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "changed since pack"):
            made(x)
        other = layer()
        made.pack().experts.load_state_dict(other.experts.state_dict())
        self.assertNotIn("packed", repr(made))
        made.pack().load_state_dict(other.state_dict())
        self.assertTrue(torch.equal(made(x), other(x)))
        self.assertNotIn("packed", repr(made.pack().double()))

    @torch.no_grad()
    def test_no_answer_comes_from_weights_in_other_memory(self):
        def other_data(experts):
            experts.w1.data = experts.w1.data * 2

        def other_data_at_an_address_that_was_free(experts):
            for _ in range(4):
                experts.w1.data = experts.w1.data * 2

        def other_order_of_the_same_data(experts):
            experts.b2.data = experts.b2.data[:1].expand(E, D)

        def other_parameter(experts):
            parameter = torch.nn.Parameter(experts.w1.clone())
            while parameter._version < experts.w1._version:
                parameter.mul_(1)
            self.assertEqual(parameter._version, experts.w1._version)
            experts.w1 = parameter

        def no_biases(experts):
            experts.b1 = None

        x = torch.randn(B, S, D)
        for change in (other_data, other_data_at_an_address_that_was_free, other_order_of_the_same_data, other_parameter,
                       no_biases):
            for inference in (False, True):
                made = layer()
                with torch.inference_mode() if inference else torch.no_grad():
                    y = made.pack()(x)
                    self.assertTrue(torch.equal(made(x), y))
                change(made.experts)
                with self.subTest(change.__name__), self.assertRaisesRegex(RuntimeError, "changed since pack"):
                    made(x)
                self.assertTrue(torch.equal(made.pack()(x), made.unpack()(x)))

    @torch.no_grad()
    def test_copies_and_states_are_not_held(self):
        made = layer().pack("int8")
        self.assertIn("packed='int8'", repr(made))
        for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            self.assertNotIn("packed", repr(other))
            self.assertTrue(torch.equal(other.experts.w1, made.experts.w1))
        self.assertEqual(set(made.state_dict()), set(layer().state_dict()))
        self.assertIn("packed='int8'", repr(made))

    @torch.no_grad()
    def test_compiles_whole(self):
        for type in ("fp32", "int8"):
            torch.compiler.reset()
            made, x = layer(k=2).pack(type), torch.randn(B, S, D)
            self.assertTrue(torch.equal(torch.compile(made, fullgraph=True, backend="aot_eager")(x), made(x)))

    def test_mistakes_are_said(self):
        with self.assertRaisesRegex(ValueError, "unknown weight type .fp16."):
            layer().pack("fp16")
        with self.assertRaisesRegex(RuntimeError, "experts are packed from fp32 weights, got Double"):
            layer().double().pack()
        for place, value, error in ((0, torch.randn(S, D + 1), r"packed experts need (packed weights|w1|b2)"),
                                    (0, torch.randn(S, D).double(), "take fp32 tokens"),
                                    (0, torch.randn(D), r"experts need tokens \[N,D\]"),
                                    (1, torch.full((S, 2), E), "expert"),
                                    (3, [], "are 7 tensors, got 0"),
                                    (4, "int8", "packed experts need|packed in tiles as bf16 only"),
                                    (5, "diagonal", "unknown order of packed experts .diagonal."),
                                    (6, F + 64, "packed experts need"),
                                    (6, -1, "packed experts need 1 to"),
                                    (6, 1 << 62, "packed experts need 1 to")):
            call = packed_call()
            call[place] = value
            with self.assertRaisesRegex((RuntimeError, ValueError), error):
                sparsight.ops.packed_moe_mlp(*call)
        for cut in range(7):  # a tensor that is too short, or of another type
            for spoil in (lambda x: x[..., :-1], lambda x: x.double(), lambda x: torch.zeros(3, 3)):
                call = packed_call("int8")
                if call[3][cut].numel() == 0:
                    continue
                call[3][cut] = spoil(call[3][cut])
                with self.assertRaisesRegex(RuntimeError, "packed experts need"):
                    sparsight.ops.packed_moe_mlp(*call)


if __name__ == "__main__":
    unittest.main()
