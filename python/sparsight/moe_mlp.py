"""Mixture-of-experts layer, a replacement for the MLP of a transformer block."""
import contextlib
import warnings

import torch
from torch import nn

from . import _checks, _mlp_parts, _onnx
from ._library import ops
from .router import Router, routers


def moe_mlp(tokens, expert, gate, w1, b1, w2, b2, activation="gelu", *, token=None, kept=None):
    """The experts of an MoE layer as one operator: y_j = sum over j's assignments of gate * (act(x_j W1 + b1) W2 + b2).

    Letters: N tokens, D width, F hidden width, E experts, K experts per token, A assignments. Experts without tokens
    are not computed and get a gradient of exactly 0. fp32 on a CPU uses Sparsight's own kernels, which are
    bit-identical for any number of threads; other dtypes and devices use PyTorch operations. Differentiable once with
    respect to tokens, gate and weights.

    Args:
        tokens: [N,D].
        expert: [N,K] int64, 0..E-1, or -1 for none; with `token`, any shape with A elements.
        gate: same shape as `expert`, floating point.
        w1, b1, w2, b2: [E,D,F], [E,F] or None, [E,F,D], [E,D] or None; dtype of the tokens.
        activation: "gelu" (by erf), "relu", "silu" or "gelu_tanh".
        token: [A] int64, the token of each assignment, if tokens do not have K experts each.
        kept: bool, same shape as `expert`: False for dropped assignments.

    Returns:
        [N,D].

    Raises:
        ValueError: unknown activation. TypeError: an activation that is not a string. RuntimeError: wrong shapes,
        dtypes, devices or indices.
    """
    _checks.text("activation", activation, '"gelu", "relu", "silu" or "gelu_tanh"')
    if _onnx.exporting():
        return _onnx.moe_mlp(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept)
    return ops.moe_mlp(tokens, expert, gate, w1, b1, w2, b2, activation, token, kept)


class MoEMLP(nn.Module):
    """A sparse mixture of two-layer MLPs, a drop-in replacement for the MLP of a ViT block.

        block.mlp = sparsight.MoEMLP(384, 1536, experts=8, k=2)
        y = block.mlp(x)                                         # [...,S,D] -> [...,S,D]
        y, routing = block.mlp(x, return_routing=True)
        loss = task + routing.loss                               # plus the load balancing losses

    In a model that you do not want to change, `sparsight.collect_routings(model)` collects the routings.

    By default this is the layer of V-MoE (Riquelme et al. 2021, section 2): softmax over the experts, then top-2, with
    the probabilities as gates. The module stores no routing or losses; they are returned on request.

    Args:
        dim: width D of the tokens.
        hidden: hidden width F of an expert.
        experts: E.
        k: experts per token; None: the router's default. Must be None for routers without k.
        router: a name of `sparsight.routers()`, or a `sparsight.Router`.
        activation: "gelu" (by erf), "relu", "silu" or "gelu_tanh".
        bias: biases in the experts.
        init: initial weights of the experts: "normal" (N(0, 0.02²), as in vision transformers), "trunc_normal" (the same
            truncated at ± 0.04), "fan_in" (N(0, 1 / fan_in)), "xavier_uniform" (U(± sqrt(6 / (fan_in + fan_out)))) or
            "torch_linear" (U(± 1 / sqrt(fan_in)), also for biases, as nn.Linear). Other biases are 0.
        seed, prefix, capacity, losses, options: router settings, as in `sparsight.Router`.

    Raises:
        ValueError: unknown router, option, activation or init (the message suggests the nearest name); k above the number of
            experts, or not a number.
        TypeError: a wrong type of dim, hidden, experts, activation or init, or of an argument of `sparsight.Router`.

    Parameters: `experts.w1` [E,D,F], `experts.b1` [E,F], `experts.w2` [E,F,D], `experts.b2` [E,D], and the router's
    under `router.`. Names and shapes are those of Sparsight's checkpoints.
    """

    def __init__(self, dim, hidden, experts, k=None, *, router="softmax_topk", activation="gelu", bias=True, prefix=0,
                 capacity=None, losses=None, seed=None, init="normal", **options):
        super().__init__()
        hidden = _checks.integer("hidden", hidden, 1)
        if isinstance(router, Router):
            given = [name for name, value in (("k", k), ("capacity", capacity), ("losses", losses), ("seed", seed),
                                              ("prefix", prefix or None), *options.items()) if value is not None]
            if given:
                raise ValueError(f"MoEMLP got a constructed router; give {', '.join(given)} to sparsight.Router")
            if (router.dim, router.experts) != (dim, experts):
                raise ValueError(f"the router is for dim={router.dim}, experts={router.experts}; the layer has "
                                 f"dim={dim}, experts={experts}")
        else:
            if k is not None:
                options["k"] = k
            router = Router(router, dim, experts, prefix=prefix, capacity=capacity, losses=losses, seed=seed, **options)
        self.dim, self.hidden, self.activation = router.dim, hidden, activation
        self.router = router
        self.experts = _Experts(router.dim, hidden, router.experts, bias, init)
        self._collected = None  # the list of collect_routings() while it collects
        with torch.device("cpu"):
            moe_mlp(torch.zeros(0, 1), torch.zeros(0, 1, dtype=torch.int64), torch.zeros(0, 1), torch.zeros(1, 1, 1),
                    None, torch.zeros(1, 1, 1), None, activation)  # raises for an unknown activation

    @classmethod
    def from_mlp(cls, mlp, experts, k=None, **options):
        """A layer whose experts are all copies of a dense MLP: sparse upcycling (Komatsuzaki et al. 2023, section 2).

        If the router has the setting `renormalize`, it is on by default, so gates sum to 1 and the new layer computes
        what the MLP computes, as long as no assignment is dropped. With other routers the output is scaled by the sum
        of a token's gates. With k=1 a renormalised gate is always 1, and the task loss does not train the router.
        Dropout is not copied.

            block.mlp = sparsight.MoEMLP.from_mlp(block.mlp, experts=8, k=2)

        Args:
            mlp: a module with `fc1`, `act` and `fc2`, as timm's `Mlp`: linear, activation, linear.
            experts, k, options: as in `MoEMLP`.

        Raises:
            TypeError: an MLP of another form (gated, with a norm, or with an activation that experts do not have).
        """
        fc1, fc2 = _mlp_parts.linear_layers(mlp)
        router = options.get("router", "softmax_topk")
        settings = _router_settings(router) if isinstance(router, str) else {}
        if "renormalize" in settings:
            options.setdefault("renormalize", True if settings["renormalize"]["type"] == "bool" else "on")
            chosen = settings["k"]["default"] if k is None and "k" in settings else k
            if chosen == 1 and options["renormalize"] in (True, "on"):
                warnings.warn(f"from_mlp with k=1: a single gate of {router} is renormalised to 1, so only the balance losses "
                              "train the router; use k=2 or more, or renormalize=False", stacklevel=2)
        if _mlp_parts.has_dropout(mlp):
            warnings.warn("from_mlp does not copy dropout: experts have none", stacklevel=2)
        layer = cls(fc1.in_features, fc1.out_features, experts, k, activation=_mlp_parts.activation_name(mlp),
                    bias=fc1.bias is not None, **options)
        with torch.no_grad():
            layer.experts.w1.copy_(fc1.weight.t())
            layer.experts.w2.copy_(fc2.weight.t())
            if fc1.bias is not None:
                layer.experts.b1.copy_(fc1.bias)
                layer.experts.b2.copy_(fc2.bias)
        return layer.to(device=fc1.weight.device, dtype=fc1.weight.dtype).train(mlp.training)

    def extra_repr(self):
        return f"activation={self.activation!r}"

    def forward(self, x, return_routing=False, valid=None, token_id=None, target=None, priority=None, seed=None, samples=None):
        """Sends each token to its experts.

        Args:
            x: [...,S,D] (every leading index is an image) or [N,D], floating point. If its dtype differs from that of
                the weights, it is converted, and the result is converted back.
            return_routing: return (y, routing). Load balancing losses are computed only then.
            valid, token_id, target, priority, seed, samples: as in `sparsight.Router.forward`. Padding gets an output
                of 0.

        Returns:
            y of x's shape, or (y, `sparsight.Routing`). Tokens without experts (dropped by capacity, not chosen) get 0.

        Several threads may call a layer at once. If another thread writes to its weights in place meanwhile, the output is a
        mixture of old and new weights. Moving, converting or packing the layer meanwhile is not allowed.
        """
        routing = self.router(x, with_losses=return_routing or self._collected is not None, valid=valid, token_id=token_id,
                              target=target, priority=priority, seed=seed, samples=samples)
        if self._collected is not None:
            self._collected.append(routing)
        tokens = x.reshape(-1, x.shape[-1]).to(self.experts.w1.dtype)
        if self.router.soft:
            y = self._mixed(tokens, routing, valid)
        else:
            if valid is not None:  # padding may contain NaN
                tokens = tokens.masked_fill(~valid.reshape(-1, 1), 0)
            y = self.experts(tokens, routing.expert, routing.gate, self.activation, token=routing.token, kept=routing.kept)
        y = y.reshape(x.shape).to(x.dtype)
        return (y, routing) if return_routing else y

    def _mixed(self, tokens, routing, valid):
        """Soft MoE (Puigcerver et al. 2024, algorithm 1): slots are mixtures of an image's tokens."""
        images, per_image, places = routing.dispatch.shape
        width = tokens.shape[1]
        # Padding may contain NaN, and a mixing weight of 0 times NaN is NaN.
        cleared = lambda t: t if valid is None else t.masked_fill(~valid.reshape(images, per_image, 1), 0)
        by_image = cleared(tokens.view(images, per_image, width))
        each = places // self.router.experts
        expert = (torch.arange(places, device=tokens.device) // each).repeat(images).unsqueeze(1)
        with _without_autocast(tokens.device.type):  # in the weights' dtype, as with every other router
            slots = routing.dispatch.to(tokens.dtype).transpose(1, 2) @ by_image  # [B,P,D]
            gate = torch.ones_like(expert, dtype=tokens.dtype)
            out = self.experts(slots.reshape(-1, width), expert, gate, self.activation)
            return cleared(routing.combine.to(tokens.dtype) @ out.view(images, places, width))

    def pack(self, type="fp32"):
        """Packs the experts' weights for fast inference on few tokens. Until `unpack()` the layer runs without
        gradients only, under `torch.no_grad()` or `torch.inference_mode()`.

        The original weights stay in memory. The packed copy takes another 8 D F bytes per expert as fp32, a half of
        that as bf16 and a quarter as int8. Loading a state dict or moving the layer unpacks it; copies of the layer are
        not packed.

        Args:
            type: "fp32" (bit-identical to unpacked weights), "bf16", or "int8" with one scale per output channel, and
                tokens rounded to int8 as they are multiplied (errors of about 0.3 % and 2 %).

        Returns:
            The layer.

        Raises:
            ValueError: unknown type. TypeError: a type that is not a string. RuntimeError: weights that are not fp32.
        """
        _checks.text("type", type, '"fp32", "bf16" or "int8"')
        self.experts.pack(type)
        return self

    def unpack(self):
        """Undoes `pack()`. Returns the layer."""
        self.experts.unpack()
        return self

    def post_step_update(self, *routings):
        """Call after the optimiser step with the routings of its batches; see `sparsight.Router.post_step_update`."""
        self.router.post_step_update(*routings)


def _router_settings(name):
    return {option["name"]: option for option in routers().get(name, {"options": []})["options"]}


def _without_autocast(device_type):
    return contextlib.nullcontext() if device_type == "meta" or _onnx.exporting() else torch.autocast(device_type, enabled=False)


# In place, of a stack of weights [E,fan_in,fan_out].
_INITS = {
    "normal": lambda w, fan_in, fan_out: nn.init.normal_(w, std=0.02),
    "trunc_normal": lambda w, fan_in, fan_out: nn.init.trunc_normal_(w, std=0.02, a=-0.04, b=0.04),
    "fan_in": lambda w, fan_in, fan_out: nn.init.normal_(w, std=fan_in**-0.5),
    "xavier_uniform": lambda w, fan_in, fan_out: _uniform(w, (6 / (fan_in + fan_out))**0.5),
    "torch_linear": lambda w, fan_in, fan_out: _uniform(w, fan_in**-0.5),
}


def _uniform(parameter, bound):
    return nn.init.uniform_(parameter, -bound, bound)


def _version(tensor):
    return None if tensor.is_inference() else tensor._version


class _Experts(nn.Module):
    """The stacked weights of E MLPs and, after pack(), their packed copy."""

    def __init__(self, dim, hidden, experts, bias, init):
        super().__init__()
        _checks.text("init", init, " or ".join(f'"{name}"' for name in _INITS))
        if init not in _INITS:
            raise ValueError(f"init must be one of {', '.join(_INITS)}, got {init!r}")
        self.init = init
        self.w1 = nn.Parameter(torch.empty(experts, dim, hidden))
        self.w2 = nn.Parameter(torch.empty(experts, hidden, dim))
        self.b1 = nn.Parameter(torch.empty(experts, hidden)) if bias else None
        self.b2 = nn.Parameter(torch.empty(experts, dim)) if bias else None
        self.unpack()
        self.reset_parameters()

    def reset_parameters(self):
        """As `init` of `MoEMLP` says."""
        for weight, bias in ((self.w1, self.b1), (self.w2, self.b2)):
            fan_in, fan_out = weight.shape[1:]
            _INITS[self.init](weight, fan_in, fan_out)
            if bias is not None and self.init == "torch_linear":
                _uniform(bias, fan_in**-0.5)
            elif bias is not None:
                nn.init.zeros_(bias)

    def forward(self, tokens, expert, gate, activation, token=None, kept=None):
        if self._packed is None or _onnx.exporting():
            return moe_mlp(tokens, expert, gate, self.w1, self.b1, self.w2, self.b2, activation, token=token, kept=kept)
        if torch.is_grad_enabled() and any(x.requires_grad for x in (tokens, gate, *self.parameters())):
            raise RuntimeError("the experts are packed for inference and have no gradients: call the layer under "
                               "torch.no_grad() or torch.inference_mode(), or unpack() it")
        if not torch.compiler.is_compiling() and self._changed():
            raise RuntimeError("the experts' weights have changed since pack(): call pack() again, or unpack()")
        return ops.packed_moe_mlp(tokens, expert, gate, *self._packed, self.w1.shape[2], activation, token, kept)

    def pack(self, type):
        tensors, order = ops.pack_moe_mlp(self.w1, self.b1, self.w2, self.b2, type)
        self._packed = tensors, type, order
        # Keeps the memory alive, so that new weights cannot reuse the same address.
        self._packed_from = [(p, p.detach(), _version(p)) for p in self.parameters()]

    def unpack(self):
        self._packed = self._packed_from = None

    def _changed(self):
        now = list(self.parameters())
        return len(now) != len(self._packed_from) or any(
            p is not of or not p.is_set_to(memory) or _version(p) != version
            for p, (of, memory, version) in zip(now, self._packed_from))

    def __getstate__(self):  # copies and pickles are not packed: the packed layout depends on the machine
        return {**super().__getstate__(), "_packed": None, "_packed_from": None}

    def _apply(self, *args, **options):  # called when moving to another device or dtype
        self.unpack()
        return super()._apply(*args, **options)

    def _load_from_state_dict(self, *args, **options):
        self.unpack()
        return super()._load_from_state_dict(*args, **options)

    def extra_repr(self):
        experts, dim, hidden = self.w1.shape
        packed = f", packed={self._packed[1]!r}" if self._packed else ""
        return f"experts={experts}, dim={dim}, hidden={hidden}, bias={self.b1 is not None}{packed}"
