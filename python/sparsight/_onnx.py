"""Experts and dense layers in operations that ONNX has: what `torch.onnx.export` traces instead of the operators
`torch.ops.sparsight.*`, which no ONNX runtime knows. Routers: _onnx_routers.py."""
import torch
import torch.nn.functional as F

_ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


def exporting():
    """Whether `torch.onnx.export` is at work, in either of its forms."""
    return torch.onnx.is_in_onnx_export()


def mlp(x, w1, b1, w2, b2, activation):
    """As `sparsight.mlp`."""
    return F.linear(_ACTIVATIONS[activation](F.linear(x, w1, b1)), w2, b2)


def self_attention(qkv, heads):
    """As `sparsight.self_attention`."""
    images, tokens, head = qkv.shape[0], qkv.shape[1], int(qkv.shape[2]) // 3 // heads
    q, k, v = qkv.reshape(images, tokens, 3, heads, head).permute(2, 0, 3, 1, 4).unbind(0)
    scores = (q * head**-0.5) @ k.transpose(2, 3)
    return (scores.softmax(3) @ v).transpose(1, 2).reshape(images, tokens, heads * head)


def moe_mlp(tokens, expert, gate, w1, b1, w2, b2, activation, token=None, kept=None):
    """As `sparsight.moe_mlp`: each expert computes its own assignments only."""
    if token is None:
        token = order_tokens(expert)
    expert, gate = expert.reshape(-1), gate.reshape(-1, 1).to(tokens.dtype)
    out = torch.zeros_like(tokens)
    for e in range(w1.shape[0]):
        chosen = expert == e if kept is None else (expert == e) & kept.reshape(-1)
        assignment = chosen.nonzero().squeeze(1)
        rows = token.index_select(0, assignment)
        y = mlp(tokens.index_select(0, rows), w1[e].t(), None if b1 is None else b1[e], w2[e].t(), None if b2 is None else b2[e],
                activation)
        y = y * gate.index_select(0, assignment)
        out = out.scatter_add(0, rows.unsqueeze(1).expand(-1, tokens.shape[1]), y)
    return out


def order_tokens(order):
    """[A]: the token of each element of [N,K]."""
    return (torch.ones_like(order).cumsum(0) - 1).reshape(-1)
