"""The dense layers of a transformer block on Sparsight's kernels: its MLP and its self-attention."""
from torch import nn

from . import _checks, _mlp_parts, _onnx
from ._library import ops


def mlp(x, w1, b1, w2, b2, activation="gelu"):
    """act(x W1^T + b1) W2^T + b2 as one operator, which keeps only the hidden layer's pre-activation for its gradient.

    Letters: D width, F hidden width. fp32 on a CPU uses Sparsight's own kernels, which are bit-identical for any number
    of threads; other dtypes and devices use PyTorch operations. Differentiable once. Ignores autocast.

    Args:
        x: [...,D].
        w1, b1, w2, b2: [F,D], [F] or None, [D,F], [D] or None, as those of `torch.nn.Linear`; dtype of x.
        activation: "gelu" (by erf), "relu", "silu" or "gelu_tanh".

    Returns:
        x's shape.

    Raises:
        ValueError: unknown activation. TypeError: an activation that is not a string. RuntimeError: wrong shapes,
        dtypes or devices.
    """
    _checks.text("activation", activation, '"gelu", "relu", "silu" or "gelu_tanh"')
    if _onnx.exporting():
        return _onnx.mlp(x, w1, b1, w2, b2, activation)
    return ops.mlp(x, w1, b1, w2, b2, activation)


def self_attention(qkv, heads):
    """Softmax attention of each image's tokens to one another, without a matrix of scores in memory.

    Letters: B images, S tokens, D width, H heads. Computes softmax(q k^T / sqrt(D / H)) v for each head, in fp32 for
    fp32 on a CPU, with the same bits for any number of threads; other dtypes and devices use PyTorch operations.
    Differentiable once. Ignores autocast.

    Args:
        qkv: [B,S,3D], queries, keys and values one after the other, each H times D / H columns: the output of timm's
            `Attention.qkv`.
        heads: H, which divides D.

    Returns:
        [B,S,D].

    Raises:
        RuntimeError: other shapes or dtypes.
    """
    heads = _checks.integer("heads", heads, 1)
    return _onnx.self_attention(qkv, heads) if _onnx.exporting() else ops.self_attention(qkv, heads)


class MLP(nn.Module):
    """The MLP of a transformer block: linear, activation, linear, as one operator.

        block.mlp = sparsight.MLP.from_mlp(block.mlp)

    Parameters: those of `fc1` and `fc2`, under timm's names.
    """

    def __init__(self, dim, hidden, activation="gelu", bias=True):
        """dim: width D. hidden: hidden width F. activation: "gelu" (by erf), "relu", "silu" or "gelu_tanh". bias: biases in
        both linear layers. Initialised as `torch.nn.Linear`."""
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden, bias=bias), nn.Linear(hidden, dim, bias=bias)
        self.activation = activation
        mlp(self.fc1.weight.new_zeros(0, dim), self.fc1.weight, None, self.fc2.weight, None, activation)  # checks the name

    @classmethod
    def from_mlp(cls, module):
        """An MLP that shares the linear layers of `module`, timm's `Mlp` or another with `fc1`, `act` and `fc2`.

        Raises:
            TypeError: another form: gated, with a norm, with dropout, or with an activation that the operator does not
                have.
        """
        fc1, fc2 = _mlp_parts.linear_layers(module)
        if _mlp_parts.has_dropout(module):
            raise TypeError("from_mlp of sparsight.MLP takes an MLP without dropout")
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        layer.fc1, layer.fc2, layer.activation = fc1, fc2, _mlp_parts.activation_name(module)
        return layer.train(module.training)

    def extra_repr(self):
        return f"activation={self.activation!r}"

    def forward(self, x):
        """x: [...,D], of the weights' dtype. Returns the same shape."""
        return mlp(x, self.fc1.weight, self.fc1.bias, self.fc2.weight, self.fc2.bias, self.activation)
