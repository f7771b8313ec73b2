"""The operators that autograd calls, called with invalid arguments: each raises an error and reads nothing out of bounds."""
import itertools
import unittest

import support
import torch

import sparsight
from sparsight import ops

N, D, F, E, B = 6, 8, 12, 4, 2
ROUTE, MIX, LOSS = 0, 1, 2  # RoutingCallKind
GRAD, PRE_ACTIVATION = 0, 11  # argument positions in a call of moe_mlp_backward


def experts_call():
    weights = [w.detach() for w in support.experts(E, D, F)]
    call = [torch.randn(N, D), torch.randint(-1, E, (N, 2)), torch.rand(N, 2), *weights, "gelu", None, None]
    return [torch.randn(N, D), *call, ops.moe_mlp_forward(*call, True)[1], True, True, True]


def strided(tensor):
    return tensor.t().contiguous().t() if tensor.dim() == 2 else tensor


class Experts(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_what_the_forward_pass_kept_may_lie_in_any_order(self):
        call = experts_call()
        expected = ops.moe_mlp_backward(*call)
        for argument in (GRAD, PRE_ACTIVATION):
            call[argument] = strided(call[argument])
            self.assertFalse(call[argument].is_contiguous())
        for a, b in zip(ops.moe_mlp_backward(*call), expected):
            self.assertTrue(torch.equal(a, b))

    def test_what_autograd_saves_may_come_back_in_another_order(self):
        x, weights = torch.randn(N, D, requires_grad=True), support.experts(E, D, F)
        gate, expert = torch.rand(N, 2, requires_grad=True), torch.randint(-1, E, (N, 2))
        wanted = [x, gate, *weights]
        results = []
        for unpack in (lambda t: t, strided):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
                y = sparsight.moe_mlp(x, expert, gate, *weights)
            results.append(torch.autograd.grad(y.square().sum(), wanted))
        for a, b in zip(*results):
            self.assertTrue(torch.equal(a, b))

    def test_other_shapes_and_types_are_refused(self):
        for argument, name, shape in ((GRAD, "grad", r"\[6, 8\]"), (PRE_ACTIVATION, "pre_activation", r"\[12, 12\]")):
            for spoil in (lambda t: t[:, :-1], lambda t: t[:-1], lambda t: t[0], lambda t: torch.cat([t, t]),
                          lambda t: t.double(), lambda t: t.bfloat16()):
                call = experts_call()
                call[argument] = spoil(call[argument])
                with self.assertRaisesRegex(RuntimeError, f"^{name} must be {shape} of the tokens' Float on cpu, got "):
                    ops.moe_mlp_backward(*call)


def routing_calls():
    """A call of routing_backward of each kind: kind, config, images, samples, inputs, grads, needs; and its number of outputs."""
    tokens, none = torch.randn(N, D), torch.tensor(3)
    router, soft = sparsight.Router("noisy_topk", D, E), sparsight.Router("soft_moe", D, E)
    weights = [w.detach() for w in router._weights()]
    route = [ROUTE, router._configs[True, True], B, "", [tokens, none, *[None] * 4, *weights], [],
             [True, *[False] * 5, *[True] * len(weights)]]
    weights = [w.detach() for w in soft._weights()]
    mix = [MIX, soft._configs[True, True], B, "", [tokens, None, *weights], [], [True, False, *[True] * len(weights)]]
    loss = [LOSS, '{"loss": "router_z", "experts": 4}', 1, "", [torch.randn(N, E), *[None] * 9], [], [True, *[False] * 9]]
    return [(route, 12), (mix, 3), (loss, 1)]


class Routings(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def refuses(self, message, call):
        with self.subTest(message), self.assertRaisesRegex(RuntimeError, f"^{message}"):
            ops.routing_backward(*call)

    def test_too_few_inputs(self):
        for (call, _), message in zip(routing_calls(), ("route takes at least 6 inputs", "mix takes at least 2 inputs",
                                                        "a loss takes 10 inputs")):
            kind, config, images, samples, inputs, _, needs = call
            grads = [torch.ones(())]
            for count in (0, 1):
                self.refuses(f"{message}, got {count}", [kind, config, images, samples, inputs[:count], grads, needs[:count]])
            self.refuses("a loss takes 10 inputs, got 11|the router (needs|has) ",
                         [kind, config, images, samples, [*inputs, torch.ones(1)], grads, [*needs, False]])

    def test_too_many_gradients(self):
        for call, outputs in routing_calls():
            self.assertEqual(len(ops.routing_backward(*call)), sum(call[6]))
            call[5] = [None] * outputs
            self.assertEqual(len(ops.routing_backward(*call)), sum(call[6]))
            call[5] = [*call[5], torch.ones(())]
            self.refuses(f"there are {outputs} outputs, got {outputs + 1} gradients", call)

    def test_gradients_that_are_not_like_their_outputs(self):
        outputs = (12, (B, N // B, E), ())  # of the first output: gate [A] with K = 2, dispatch, the loss
        for (call, _), shape in zip(routing_calls(), outputs):
            good = torch.ones(shape)
            call[5] = [good]
            self.assertEqual(len(ops.routing_backward(*call)), sum(call[6]))
            for bad in (torch.ones(3), good[None], good.double(), good.bfloat16(), good.long(), good.to(torch.complex64)):
                call[5] = [bad]
                self.refuses("gradient 0 must be Float .* on cpu like its output, got ", call)
        call = routing_calls()[0][0]
        call[5] = [*[None] * 5, torch.ones(12)]
        self.refuses("output 5 is Long and has no gradient", call)

    def test_needs(self):
        for call, _ in routing_calls():
            call[6] = call[6][:-1]
            self.refuses("needs must have one entry for each of the ", call)
            call[6] = [*call[6], False, False]
            self.refuses("needs must have one entry for each of the ", call)
        route, mix, loss = (call for call, _ in routing_calls())
        for call, argument in ((route, 1), (route, 2), (mix, 1), (loss, 5)):
            needs, call[6] = call[6], [i == argument for i in range(len(call[6]))]
            self.refuses(f"input {argument} can have no gradient", call)
            call[6] = needs

    def test_configs_that_nest_deeply(self):
        deep = '{"a":' * 100_000 + "1" + "}" * 100_000
        for (call, _), config in itertools.product(routing_calls(), (deep, deep[:500_000], "[" * 100_000)):
            call[1] = config
            self.refuses("config nests deeper than 64 levels", call)
        router = sparsight.Router("softmax_topk", D, E)
        weights = [w.detach() for w in router._weights()]
        with self.assertRaisesRegex(RuntimeError, "^config nests deeper than 64 levels"):
            ops.route(deep, torch.randn(N, D), B, weights, torch.tensor(3), None, None, None, "", [])

    def test_unknown_kinds(self):
        for kind in (9, 3, -1):
            self.refuses(rf"kind must be 0 \(route\), 1 \(mix\) or 2 \(loss\), got {kind}",
                         [kind, *routing_calls()[0][0][1:]])

    def test_draws_that_are_named_and_not_there(self):
        for name, draw in (("random", "draw"), ("noisy_topk", "noise")):
            router = sparsight.Router(name, D, E)
            for names, tensors in ((draw, []), ("", [torch.randn(N, E)])):
                with self.assertRaisesRegex(RuntimeError, "the router needs . weights .* samples, got . tensors for them"):
                    ops.route(router._configs[True, True], torch.randn(N, D), B, [w.detach() for w in router._weights()],
                              torch.tensor(3), None, None, None, names, tensors)


if __name__ == "__main__":
    unittest.main()
