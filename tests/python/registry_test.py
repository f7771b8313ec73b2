"""Whatever is registered, by name: opcheck of every operator with every router and loss, gradcheck of every router and loss, and
the same bits for any number of threads."""
import itertools
import unittest

import dense_cases
import loss_cases
import support
import torch

import sparsight
from sparsight import losses, ops

B, S, D, F, E = 2, 6, 8, 12, 4
ROUTERS, LOSSES = sorted(sparsight.routers()), sorted(losses.names())
NOISY, NEED_NOISE = ("softmax_topk", "noisy_topk", "cosine", "hierarchical"), ("load", "vmoe_load")
# They say what there is, make it once, or call Python: they are not traced.
SETUP = {"describe_router", "pack_moe_mlp", "init_router", "list_losses", "list_routers", "version", "attack", "attacked_pixels",
         "answer_attack"}
ROUTE, LOSS = 0, 2  # RoutingCallKind


def make_router(name, weigh=None, **options):
    router = sparsight.Router(name, D, E, losses=weigh, **options)
    for parameter in router.parameters():
        torch.nn.init.normal_(parameter)
    return router


def choosing():
    """Every router that does not mix tokens."""
    return [router for router in map(make_router, ROUTERS) if not router.soft]


def leaves(router):
    return [weight.detach().requires_grad_(weight.requires_grad) for weight in router._weights()]


def images():
    return torch.randn(B, S, D)


def target():
    return torch.rand(B, E).softmax(1)


# ---- calls of each operator: (what it is a call for, arguments, keywords)


def decisions(soft):
    valid = torch.ones(B * S, dtype=torch.bool)
    valid[[4, 5, 10, 11]] = False
    for name in ROUTERS:
        router = make_router(name, {"router_z": 0.1}, capacity=1.0)
        if router.soft != soft:
            continue
        for training in (True, False):
            for given in ([None] * 3, [valid, torch.randint(100, (B * S,)), target()]):
                inputs = [router._configs[training, True], images().view(-1, D).requires_grad_(), B, leaves(router)]
                yield name, [*inputs, *(given[:1] if soft else [torch.tensor(3), *given, "", []])], {}


def route():
    yield from decisions(soft=False)
    router = make_router("softmax_topk")
    yield "given samples", [router._configs[True, True], images().view(-1, D), B, leaves(router), torch.tensor(3), None, None,
                          None, "noise", [torch.randn(B * S, E)]], {}
    router = make_router("softmax_topk", capacity={"factor": 1.0, "priority": "given"})
    yield "given priorities", [router._configs[True, True], images().view(-1, D).requires_grad_(), B, leaves(router),
                               torch.tensor(3), None, None, None, "", [], torch.rand(B * S)], {}
    router = make_router("per_image", prefix=1)
    yield "class token", [router._configs[True, True], images().view(-1, D).requires_grad_(), B, leaves(router),
                          torch.tensor(3), None, None, None, "", []], {}


def mix():
    return decisions(soft=True)


def routing_loss():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        for name, each in loss_cases.cases(dtype).items():
            for case in each:
                yield name, *loss_cases.operator_call(*case)


def routing_backward():
    for router in choosing():
        tokens, seed, weights = images().view(-1, D), torch.tensor(3), [w.detach() for w in router._weights()]
        config = router._configs[True, True]
        outputs = ops.route(config, tokens, B, weights, seed, None, None, None, "", [])
        grads = [torch.randn_like(t) if t.is_floating_point() else None for t in outputs]
        needs = [True, *[False] * 5, *[w.requires_grad for w in router._weights()]]
        yield router.name, [ROUTE, config, B, "", [tokens, seed, *[None] * 4, *weights], grads, needs], {}
    places = ("logits", "noisy_logits", "noise_scale", "scores", "gate", "expert", "valid", "target", "threshold", "token")
    for name, each in loss_cases.cases(torch.float32).items():
        (config, count), tensors = loss_cases.operator_call(*each[0])
        inputs = [tensors.get(place) for place in places]
        needs = [x is not None and x.requires_grad for x in inputs]
        yield name, [LOSS, config, count, "", [x if x is None else x.detach() for x in inputs], [torch.ones(())], needs], {}


def router_post_step_update():
    for router in choosing():
        if router.needs_post_step_update:
            r = router(images())
            groups = [[r.group_scores.detach()], [r.group_chosen.sum(0)]] if router.groups else [[], []]
            yield router.name, [router._configs[True, True], D, [w.detach() for w in leaves(router)], [r.scores.detach()],
                                [r.chosen_count], [torch.ones(B * S, dtype=torch.bool)], *groups], {}


def moe_mlp():
    for dtype in (torch.float32, torch.float64):
        for router in choosing():
            r = router(images())
            yield router.name, [torch.randn(B * S, D, dtype=dtype, requires_grad=True), r.expert,
                                r.gate.detach().to(dtype).requires_grad_(), *support.experts(E, D, F, dtype=dtype), "gelu",
                                r.token, r.kept], {}


def moe_mlp_forward():
    for activation in support.ACTIVATIONS:
        for bias in (True, False):
            weights = [w if w is None else w.detach() for w in support.experts(E, D, F, bias)]
            call = [torch.randn(7, D), torch.randint(-1, E, (7, 2)), torch.rand(7, 2), *weights, activation, None, None]
            for keep in (True, False):
                yield activation, [*call, keep], {}


def moe_mlp_backward():
    for activation, (*call, keep), _ in moe_mlp_forward():
        if keep:
            before = ops.moe_mlp_forward(*call, True)[1]
            for needs in itertools.product((True, False), repeat=3):
                yield activation, [torch.randn(7, D), *call, before, *needs], {}


def packed_moe_mlp():
    for type in ("fp32", "bf16", "int8"):
        for activation, (tokens, expert, gate, *weights, _, token, kept, keep), _ in moe_mlp_forward():
            if keep:
                packed = ops.pack_moe_mlp(*weights, type)
                yield f"{activation}, {type}", [tokens, expert, gate, packed[0], type, packed[1], F, activation, token, kept], {}


OPERATORS = {calls.__name__: calls for calls in (route, mix, routing_loss, routing_backward, router_post_step_update, moe_mlp,
                                                 moe_mlp_forward, moe_mlp_backward, packed_moe_mlp)} | dense_cases.OPERATORS


class Operators(unittest.TestCase):
    def test_none_is_left_out(self):
        every = {name.partition("::")[2] for name in torch._C._dispatch_get_all_op_names() if name.startswith("sparsight::")}
        self.assertEqual(set(OPERATORS), every - SETUP)
        self.assertEqual(sorted(loss_cases.cases(torch.float32)), LOSSES)
        for name in LOSSES:
            self.assertTrue(callable(getattr(losses, name)))

    def test_opcheck(self):
        for operator, calls in OPERATORS.items():
            torch.manual_seed(0)
            for what, arguments, keywords in calls():
                with self.subTest(operator, of=what):
                    torch.library.opcheck(getattr(ops, operator).default, arguments, keywords)


class Gradients(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_every_loss(self):
        for name, each in loss_cases.cases(torch.float64).items():
            for case in each:
                with self.subTest(name):
                    torch.autograd.gradcheck(*case)

    def test_a_load_loss_without_noise_is_refused(self):
        for name in {router.name for router in choosing()} - set(NOISY):
            with self.subTest(name), self.assertRaisesRegex(ValueError, "load = 0.1 needs router noise"):
                make_router(name, {"load": 0.1})
        with self.assertRaisesRegex(ValueError, "vmoe_load = 0.1 needs router noise"):
            make_router("softmax_topk", {"vmoe_load": 0.1}, noise=0)

    def test_every_router_with_every_loss(self):
        # By default the threshold loss gives scores no gradient, on purpose.
        weigh = {**dict.fromkeys(LOSSES, 0.1), "threshold_score_gradient": True}
        for name in ROUTERS:
            with self.subTest(name):
                router = make_router(name, {key: weigh[key] for key in weigh if name in NOISY or key not in NEED_NOISE}).double()
                names = [n for n, _ in router.named_parameters()]
                given = {} if router.soft else {"seed": 3, "target": target().double()}

                def outputs(x, *weights):
                    r = torch.func.functional_call(router, dict(zip(names, weights)), (x,), given)
                    found = r[:3] if router.soft else (r.gate, r.logits, r.scores, r.loss, r.group_scores)
                    return tuple(t for t in found if t is not None and t.requires_grad and t.numel() > 0)

                torch.autograd.gradcheck(outputs, (images().double().requires_grad_(), *router.parameters()))


class Threads(unittest.TestCase):
    def test_do_not_change_a_bit(self):
        torch.manual_seed(0)
        threads = torch.get_num_threads()
        x = torch.randn(4, 96, 32, requires_grad=True)
        for name in ROUTERS:
            with self.subTest(name):
                layer = sparsight.MoEMLP(32, 64, E, router=name, seed=1)
                results = []
                for count in (1, 2, 4):
                    torch.set_num_threads(count)
                    y, routing = layer(x, return_routing=True, **({} if layer.router.soft else {"seed": 3}))
                    results.append([y, *torch.autograd.grad(y.square().sum() + routing.loss, [x, *layer.parameters()],
                                                            materialize_grads=True)])
                torch.set_num_threads(threads)
                for other in results[1:]:
                    for a, b in zip(results[0], other):
                        self.assertTrue(torch.equal(a, b))


if __name__ == "__main__":
    unittest.main()
