"""Shared helpers of the tests of the Python package: the built package on the path, and MoE layers in plain PyTorch."""
import os
import pathlib
import sys
import sysconfig

BUILD = pathlib.Path(os.environ.get("BUILD", "build/release")).resolve()
sys.path.insert(0, str(BUILD / "python"))
if not (BUILD / "python/sparsight/_ops.so").exists():
    print("the Python package is not built (target sparsight_python)")
    sys.exit(77)

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small tensors: more threads only wait, for long on a busy machine

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


def plain_moe(tokens, expert, gate, w1, b1, w2, b2, activation="gelu"):
    """The experts one assignment matrix at a time. expert, gate: [N,K]; expert -1 is none."""
    out = torch.zeros_like(tokens)
    for e in range(w1.shape[0]):
        hidden = tokens @ w1[e] + (0 if b1 is None else b1[e])
        y = ACTIVATIONS[activation](hidden) @ w2[e] + (0 if b2 is None else b2[e])
        out = out + y * (gate * (expert == e)).sum(1, keepdim=True).to(tokens.dtype)
    return out


def experts(count, dim, hidden, bias=True, dtype=torch.float32):
    """w1, b1, w2, b2 that require gradients."""
    shapes = [(count, dim, hidden), (count, hidden), (count, hidden, dim), (count, dim)]
    tensors = [(torch.randn(shape, dtype=dtype) * 0.3).requires_grad_() for shape in shapes]
    if not bias:
        tensors[1] = tensors[3] = None
    return tensors


def has_inductor():
    """torch.compile's own backend compiles C++ against Python's headers."""
    return (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists()
