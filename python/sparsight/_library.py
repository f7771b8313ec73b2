"""Loads the compiled operators `torch.ops.sparsight.*` and gives them fake kernels.

Fake kernels return tensors with the shapes and types of an operator's outputs without running it; torch.compile and
torch.export need them. Output shapes follow from input shapes, with one exception: for a router without a fixed number
of experts per token the number of assignments depends on the data, which is an unbacked size to the compiler.
"""
import functools
import json
import os
import pathlib
import sys

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import _disable_current_modes

def _find():
    """SPARSIGHT_OPS, or _ops.so of the package, which has two folders if it is installed as editable."""
    paths = [pathlib.Path(folder) / "_ops.so" for folder in sys.modules[__package__].__path__]
    return pathlib.Path(os.environ.get("SPARSIGHT_OPS") or next((p for p in paths if p.exists()), paths[0]))


_PATH = _find()


def _load():
    if not _PATH.exists():
        raise ImportError(f"sparsight: the compiled operators ({_PATH.name}) are missing; run `pip install .` in the "
                          "repository, or build the target sparsight_python")
    try:
        torch.ops.load_library(str(_PATH))
    except OSError as error:
        raise ImportError(f"sparsight was built for a different torch than {torch.__version__}; reinstall it with "
                          f"`pip install --force-reinstall --no-deps .`: {error}") from None


_load()
ops = torch.ops.sparsight


def path():
    """The file of the compiled operators."""
    return _PATH


@functools.lru_cache(maxsize=1024)
def describe(config, dim):
    """Describes the router of a configuration (JSON string) for tokens of width `dim`; see csrc/router_setup.h."""
    with _disable_current_modes():  # fake kernels call this, and need the result of the real operator
        return json.loads(ops.describe_router(config, dim))


def _router_type(tokens, weights):
    return torch.float64 if (weights[0] if len(weights) else tokens).dtype == torch.float64 else torch.float32


def _fake(operator):
    """Registers a fake kernel that checks devices. It also runs if only some tensors are on the device "meta"; its
    outputs could then be uninitialised memory on a real device."""
    def register(kernel):
        @functools.wraps(kernel)
        def on_one_device(*args, **options):
            tensors = [x for x in _pytree.tree_leaves((args, options)) if isinstance(x, torch.Tensor)]
            # As in torch's own operators, CPU scalars work with any device.
            devices = sorted({str(x.device) for x in tensors if x.dim() > 0 or x.device.type != "cpu"})
            if len(devices) > 1:
                raise RuntimeError(f"sparsight::{operator} needs its tensors on one device, got {' and '.join(devices)}")
            return kernel(*args, **options)
        torch.library.register_fake(f"sparsight::{operator}", on_one_device)
    return register


@_fake("route")
def _(config, tokens, images, weights, seed, valid, token_id, target, sample_names, samples, priority=None):
    settings, info = json.loads(config), describe(config, int(tokens.shape[1]))
    experts, dtype = settings["experts"], _router_type(tokens, weights)
    n = tokens.shape[0]
    a = n * info["per_token"] if info["per_token"] > 0 else torch.library.get_ctx().new_dynamic_size()
    integers = lambda *shape: tokens.new_empty(shape, dtype=torch.int64)
    of_groups = (n, info["groups"]) if info["groups"] else (0, 0)
    return (tokens.new_empty((a,), dtype=dtype),
            tokens.new_empty((len(info["losses"]) if "losses" in settings else 0,), dtype=dtype),
            tokens.new_empty((n if info["logits"] else 0, experts), dtype=dtype),
            tokens.new_empty((n if info["scores"] else 0, experts), dtype=dtype),
            integers(a), integers(a), integers(a), tokens.new_empty((a,), dtype=torch.bool), integers(experts),
            tokens.new_empty(of_groups, dtype=dtype), tokens.new_empty(of_groups, dtype=torch.bool),
            tokens.new_empty((len(info["metrics"]),), dtype=dtype))


@_fake("mix")
def _(config, tokens, images, weights, valid=None):
    per_image = tokens.shape[0] // images if images else json.loads(config).get("prefix", 0)  # no images: only the prefix
    like = tokens.new_empty((images, per_image, weights[0].shape[0]), dtype=_router_type(tokens, weights))
    return torch.empty_like(like), torch.empty_like(like), torch.empty_like(like)


@_fake("routing_loss")
def _(config, images=1, logits=None, noisy_logits=None, noise_scale=None, scores=None, gate=None, expert=None, valid=None,
      target=None, threshold=None, token=None):
    real = [x for x in (logits, scores, gate, noisy_logits, noise_scale, target, threshold) if x is not None]
    dtype = torch.float64 if any(x.dtype == torch.float64 for x in real) else torch.float32
    return real[0].new_empty((), dtype=dtype) if real else torch.empty((), dtype=dtype)


@_fake("routing_backward")
def _(kind, config, images, sample_names, inputs, grads, needs):
    return [x.new_empty(x.shape) for x, needed in zip(inputs, needs) if needed]


@_fake("moe_mlp")
def _(tokens, expert, gate, w1, b1, w2, b2, activation="gelu", token=None, kept=None):
    return tokens.new_empty(tokens.shape)


@_fake("moe_mlp_forward")
def _(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, keep):
    return tokens.new_empty(tokens.shape), tokens.new_empty((expert.numel(), w1.shape[2]) if keep else (0,))


@_fake("moe_mlp_backward")
def _(grad, tokens, expert, gate, w1, b1, w2, b2, activation, token, kept, pre_activation, need_tokens, need_gate,
      need_weights=True):
    def like(x, needed=True):
        return x.new_empty(x.shape) if needed and x is not None else tokens.new_empty((0,))
    no_gate = gate.new_empty((0,))
    weights = [like(w, need_weights) for w in (w1, b1, w2, b2)]
    return like(tokens, need_tokens), like(gate) if need_gate else no_gate, *weights


@_fake("mlp")
def _(x, w1, b1, w2, b2, activation="gelu"):
    return x.new_empty(x.shape)


@_fake("mlp_forward")
def _(x, w1, b1, w2, b2, activation, keep):
    return x.new_empty(x.shape), x.new_empty((x.numel() // x.shape[-1], w1.shape[0]) if keep else (0,))


@_fake("mlp_backward")
def _(grad, x, w1, b1, w2, b2, activation, pre_activation, need_x, need_weights):
    def like(t, needed):
        return t.new_empty(t.shape) if needed and t is not None else x.new_empty((0,))
    return [like(x, need_x), *(like(w, need_weights) for w in (w1, b1, w2, b2))]


def _attention_output(qkv):
    return qkv.new_empty((qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3))


@_fake("self_attention")
def _(qkv, heads):
    return _attention_output(qkv)


@_fake("self_attention_forward")
def _(qkv, heads, keep):
    wide = torch.float64 if qkv.dtype == torch.float64 else torch.float32
    return _attention_output(qkv), qkv.new_empty((qkv.shape[0], heads, qkv.shape[1]) if keep else (0,), dtype=wide)


@_fake("self_attention_backward")
def _(grad, qkv, heads, out, log_sum):
    return qkv.new_empty(qkv.shape)


@_fake("packed_moe_mlp")
def _(tokens, expert, gate, packed, type, order, hidden, activation="gelu", token=None, kept=None):
    return tokens.new_empty(tokens.shape)


@_fake("router_post_step_update")
def _(config, dim, weights, scores, chosen_count, valid, group_scores, group_count):
    return [w.new_empty(w.shape) for w in weights]
