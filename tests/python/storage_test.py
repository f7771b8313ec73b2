"""Tensors whose memory ends before their shape does, and tensors that another thread changes: an error, never a crash."""
import threading
import time
import unittest

import support
import torch

import sparsight
from sparsight import ops

N, D, F, E, B = 6, 8, 12, 4, 2


def emptied(tensor):
    copy = tensor.detach().clone()
    copy.untyped_storage().resize_(0)
    return copy


def one_short(tensor):
    copy = tensor.detach().clone()
    copy.untyped_storage().resize_(copy.untyped_storage().nbytes() - copy.element_size())
    return copy


def calls():
    """(operator, arguments) of every operator with tensors."""
    torch.manual_seed(0)
    weights = [w.detach() for w in support.experts(E, D, F)]
    tokens, expert, gate = torch.randn(N, D), torch.randint(-1, E, (N, 2)), torch.rand(N, 2)
    kept = torch.ones(N, 2, dtype=torch.bool)
    mlp = [tokens, expert, gate, *weights, "gelu", None, kept]
    yield ops.moe_mlp, mlp
    yield ops.moe_mlp_forward, [*mlp, True]
    yield ops.moe_mlp_backward, [torch.randn(N, D), *mlp, ops.moe_mlp_forward(*mlp, True)[1], True, True, True]
    for type in ("fp32", "bf16", "int8"):
        yield ops.pack_moe_mlp, [*weights, type]
        packed, order = ops.pack_moe_mlp(*weights, type)
        yield ops.packed_moe_mlp, [tokens, expert, gate, packed, type, order, F, "gelu", None, kept]
    dense = [tokens, torch.randn(F, D), torch.randn(F), torch.randn(D, F), torch.randn(D), "gelu"]
    yield ops.mlp, dense
    yield ops.mlp_forward, [*dense, True]
    yield ops.mlp_backward, [tokens, *dense, ops.mlp_forward(*dense, True)[1], True, True]
    qkv = torch.randn(2, 5, 3 * D)
    out, log_sum = ops.self_attention_forward(qkv, 2, True)
    yield ops.self_attention, [qkv, 2]
    yield ops.self_attention_forward, [qkv, 2, True]
    yield ops.self_attention_backward, [torch.randn_like(out), qkv, 2, out, log_sum]
    valid = torch.ones(N, dtype=torch.bool)
    router, soft = sparsight.Router("noisy_topk", D, E), sparsight.Router("soft_moe", D, E)
    own = [w.detach() for w in router._weights()]
    route = [router._configs[True, True], tokens, B, own, torch.tensor(3), valid, torch.arange(N), torch.ones(B, E), "", []]
    yield ops.route, route
    yield ops.routing_backward, [0, route[0], B, "", [tokens, torch.tensor(3), None, None, None, None, *own], [],
                                 [True, *[False] * 5, *[True] * len(own)]]
    yield ops.mix, [soft._configs[True, True], tokens, B, [w.detach() for w in soft._weights()], valid]
    yield ops.routing_loss, ['{"loss": "router_z", "experts": 4}', B, torch.randn(N, E)]
    learns = sparsight.Router("sigmoid_bias", D, E)
    yield ops.router_post_step_update, [learns._configs[True, True], D, [w.detach() for w in learns._weights()],
                                        [torch.rand(N, E)], [torch.ones(E, dtype=torch.long)], [valid], [], []]


def spoiled(arguments, spoil):
    """The arguments with one of their tensors spoiled at a time."""
    for i, argument in enumerate(arguments):
        if isinstance(argument, torch.Tensor) and argument.numel():
            yield [*arguments[:i], spoil(argument), *arguments[i + 1:]]
        if isinstance(argument, list):
            for j, entry in enumerate(argument):
                if isinstance(entry, torch.Tensor) and entry.numel():
                    yield [*arguments[:i], [*argument[:j], spoil(entry), *argument[j + 1:]], *arguments[i + 1:]]


class Storage(unittest.TestCase):
    def test_tensors_beyond_their_storage_are_an_error(self):
        tried = 0
        for operator, arguments in calls():
            operator(*arguments)
            for spoil in (emptied, one_short):
                for call in spoiled(arguments, spoil):
                    with self.subTest(operator=str(operator), spoil=spoil.__name__):
                        with self.assertRaisesRegex(RuntimeError, "bytes of storage, which has [0-9]+: it was emptied"):
                            operator(*call)
                    tried += 1
        self.assertGreater(tried, 150)

    def test_layers_whose_weights_were_emptied(self):
        layer = sparsight.MoEMLP(D, F, E).eval()
        layer.experts.w1.untyped_storage().resize_(0)
        for call in (lambda: layer(torch.randn(1, N, D)), layer.pack):
            with torch.no_grad(), self.assertRaisesRegex(RuntimeError, "it was emptied or resized"):
                call()

    def test_tensors_without_storage_and_views_still_work(self):
        weights = [w.detach() for w in support.experts(E, D, F)]
        tokens, expert, gate = torch.randn(N, D), torch.randint(-1, E, (N, 2)), torch.rand(N, 2)
        expected = ops.moe_mlp(tokens, expert, gate, *weights)
        wide = torch.randn(N, 2 * D)
        wide[:, D:] = tokens
        view = wide[:, D:]  # its last element is the last of the storage
        self.assertTrue(torch.equal(ops.moe_mlp(view, expert, gate, *weights), expected))
        self.assertEqual(ops.moe_mlp(tokens[:0], expert[:0], gate[:0], *weights).shape, (0, D))

    def test_indices_and_shapes_that_another_thread_changes(self):
        weights = [w.detach() for w in support.experts(E, D, F)]
        tokens, gate = torch.randn(N, D), torch.rand(N, 2)
        good, stop = torch.randint(0, E, (N, 2)), threading.Event()
        expert, shape = good.clone(), torch.randn(N, D)

        def change():
            while not stop.is_set():
                expert.fill_(1 << 40)
                expert.copy_(good)
                shape.as_strided_((N, D), (D, 1))
                shape.as_strided_((N - 1, D), (D, 1))

        thread = threading.Thread(target=change)
        thread.start()
        end, ran, refused = time.monotonic() + 2, 0, 0
        while time.monotonic() < end:
            for call in ((tokens, expert, gate), (shape, good, gate)):
                try:
                    self.assertTrue(ops.moe_mlp(*call, *weights).isfinite().all())
                    ran += 1
                except RuntimeError as error:
                    self.assertRegex(str(error), "must lie between|must be \\[N,K\\]|must have")
                    refused += 1
        stop.set()
        thread.join()
        self.assertGreater(ran, 0)


if __name__ == "__main__":
    unittest.main()
