"""Calls of the operators of dense layers, for opcheck: (what, arguments, keywords) of each."""
import itertools

import support
import torch

from sparsight import ops

DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def mlp_tensors(shape=(3, 5, 6), f=10, dtype=torch.float32, bias=True):
    d = shape[-1]
    sizes = [shape, (f, d), (f,), (d, f), (d,)]
    tensors = [(torch.randn(size, dtype=dtype) * 0.5).requires_grad_() for size in sizes]
    if not bias:
        tensors[2] = tensors[4] = None
    return tensors


def mlp():
    for dtype in DTYPES:
        for inputs in (mlp_tensors(dtype=dtype), mlp_tensors((0, 6), dtype=dtype), mlp_tensors(bias=False, dtype=dtype)):
            yield dtype, inputs, {}


def mlp_forward():
    for activation, bias, keep in itertools.product(support.ACTIVATIONS, (True, False), (True, False)):
        tensors = [t if t is None else t.detach() for t in mlp_tensors(bias=bias)]
        yield activation, [*tensors, activation, keep], {}


def mlp_backward():
    for activation, (*call, keep), _ in mlp_forward():
        if keep:
            pre_activation = ops.mlp_forward(*call, True)[1]
            for needs in itertools.product((True, False), repeat=2):
                yield activation, [torch.randn_like(call[0]), *call, pre_activation, *needs], {}


def self_attention():
    for dtype in DTYPES:
        for shape in ((2, 5, 12), (0, 5, 12)):
            yield dtype, [torch.randn(shape, dtype=dtype, requires_grad=True), 2], {}


def self_attention_forward():
    for dtype, (qkv, heads), _ in self_attention():
        for keep in (True, False):
            yield dtype, [qkv.detach(), heads, keep], {}


def self_attention_backward():
    for dtype, (qkv, heads, keep), _ in self_attention_forward():
        if keep:
            out, log_sum = ops.self_attention_forward(qkv, heads, True)
            yield dtype, [torch.randn_like(out), qkv, heads, out, log_sum], {}


OPERATORS = {calls.__name__: calls for calls in (mlp, mlp_forward, mlp_backward, self_attention, self_attention_forward,
                                                 self_attention_backward)}
