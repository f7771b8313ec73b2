"""The library's routers as one module."""
import json
import math
import numbers

import torch
from torch import nn

from . import _checks, _onnx, _onnx_routers
from ._library import describe, ops
from .routing import Routing, SoftRouting


def routers():
    """All routers: {name: {"summary": text, "options": [{"name", "type", "allowed", "default", "help"}, ...]}}."""
    return json.loads(ops.list_routers())


def _flat(name, given, x):
    """Flattens a per-token argument to [N]."""
    if given is not None and given.shape != x.shape[:-1]:
        raise RuntimeError(f"{name} has the shape {list(given.shape)}, expected {list(x.shape[:-1])}: that of x without D")
    return None if given is None else given.reshape(-1)


class Router(nn.Module):
    """Chooses experts for tokens.

        router = sparsight.Router("noisy_topk", dim=384, experts=8, k=2)
        routing = router(x)                      # x: [B,S,D] or [N,D]; a sparsight.Routing
        loss = task + routing.loss               # plus the load balancing losses of the router's paper

    Routing is one C++ operator, `torch.ops.sparsight.route`. It computes in fp32 (fp64 for fp64 weights) whatever the
    dtype of the tokens, also under autocast. Gates, scores, logits and losses are differentiable once with respect to
    the tokens and the router's weights.

    Noise (in training, for routers that have it) is generated from a seed taken from torch's default generator at each
    call, so `torch.manual_seed` makes it reproducible; `seed` and `samples` set it explicitly.

    Args:
        name: one of `sparsight.routers()`. Each entry names its paper; docs/routing.md describes them all.
        dim: width D of the tokens.
        experts: E.
        prefix: number of leading tokens of each image that are not patches (class token); used by `per_image` routing.
        capacity: capacity factor, or a dict with the settings of docs/routing.md#capacity
            (`{"factor": 1.25, "priority": "max_gate"}`). None: no limit.
        losses: weights of load balancing losses by name (docs/routing.md#losses), and their variants. Losses that are
            not named have the weight of the router's paper; 0 switches one off. A loss that is not defined for the
            router, its settings or the current mode has the value 0; docs/python.md#routers lists these.
        seed: seed of the initial weights, the same as the library's for that seed; None: taken from torch's default
            generator. `hash` has no weights; there it is the option `seed`, which selects the hash function (None: 0).
        options: the router's own settings, `sparsight.routers()[name]["options"]`: k, noise, temperature, ...

    Raises:
        ValueError: unknown router, option or loss (the message suggests the nearest name), a value out of range, or a
            wrong type of an option, loss weight or capacity setting.
        TypeError: a wrong type of an argument above, or an option that is not a number, string or list.

    Parameters and buffers have the same names as in the library's checkpoints: `weight`, `noise_weight`, `bias`, ...
    """

    def __init__(self, name, dim, experts, *, prefix=0, capacity=None, losses=None, seed=None, **options):
        super().__init__()
        _checks.text("router", name, "one of sparsight.routers()")
        dim, experts = _checks.integer("dim", dim, 1), _checks.integer("experts", experts, 1)
        prefix = _checks.integer("prefix", prefix, 0)
        seed = None if seed is None else _checks.integer("seed", seed, 0)
        if isinstance(capacity, bool) or not (capacity is None or isinstance(capacity, (numbers.Real, dict))):
            raise TypeError(f"capacity must be a number, a dict of settings or None, got {capacity!r}")
        if isinstance(capacity, numbers.Real):
            capacity = {"factor": float(capacity)}
        if seed is not None and any(o["name"] == "seed" for o in routers().get(name, {"options": []})["options"]):
            options["seed"] = seed
        self.name, self.dim, self.experts = name, dim, experts
        settings = _checks.plain("settings", {"router": {"name": name, **options}, "experts": experts, "prefix": prefix,
                                              "capacity": capacity or {}})
        losses = _checks.plain("losses", losses or {})
        self._settings = json.dumps({**settings, "losses": losses})
        # JSON configurations for the operators, by (training, with losses).
        self._configs = {(training, with_losses): json.dumps(
            {**settings, "training": training, **({"losses": losses} if with_losses else {})})
            for training in (False, True) for with_losses in (False, True)}
        info = describe(self._configs[True, True], dim)
        # For exports to ONNX, which cannot ask an operator while they trace.
        self._defaults = {option["name"]: option["default"] for option in routers()[name]["options"]}
        #: True if the router mixes tokens (Soft MoE) instead of choosing experts
        self.soft = info["soft"]
        #: True if it needs `post_step_update` (sigmoid_bias, balanced_batchwise, balanced_hierarchical)
        self.needs_post_step_update = info["learns"]
        #: weights of the losses in `routing.loss`
        self.loss_weights = dict(info["losses"])
        #: those of them whose mean over several routers counts, not the sum (superclass)
        self.averaged_losses = tuple(info["averaged"])
        #: K in training, or 0 if the number of experts per token is not fixed
        self.per_token = info["per_token"]
        #: number of expert groups G of a two-level router that also balances its groups (balanced_hierarchical), or 0
        self.groups = info["groups"]
        #: names of the router's own metrics (`routing.metrics`)
        self.metric_names = tuple(info["metrics"])
        #: names that `samples` of `forward` may have
        self.sample_names = tuple(info["samples"])
        self._weight_names = tuple(w["name"] for w in info["weights"])
        for weight in info["weights"]:
            empty = torch.empty(weight["shape"], dtype=torch.int64 if weight["integer"] else torch.float32)
            if weight["parameter"]:
                self.register_parameter(weight["name"], nn.Parameter(empty))
            else:
                self.register_buffer(weight["name"], empty)
        self.reset_parameters(seed)

    def reset_parameters(self, seed=None):
        """Initialises the weights as the library does for this seed (an integer >= 0).

        None: a seed from torch's default generator.

        Does nothing for weights on the device "meta".
        """
        if any(weight.is_meta for weight in self._weights()):
            return
        seed = int(torch.randint(0, 2**62, (), device="cpu")) if seed is None else _checks.integer("seed", seed, 0)
        with torch.no_grad():
            for old, new in zip(self._weights(), ops.init_router(self._configs[True, True], self.dim, seed, "")):
                old.copy_(new)

    def _weights(self):
        return [getattr(self, name) for name in self._weight_names]

    def extra_repr(self):
        settings = json.loads(self._settings)
        options = {k: v for k, v in settings["router"].items() if k != "name"}
        return ", ".join([repr(self.name), f"dim={self.dim}", f"experts={self.experts}"] +
                         [f"{k}={v!r}" for k, v in options.items()])

    def forward(self, x, with_losses=True, valid=None, token_id=None, target=None, priority=None, seed=None, samples=None):
        """Routes tokens.

        Args:
            x: [...,S,D] (every leading index is an image) or [N,D] (one image), floating point.
            with_losses: compute the load balancing losses; otherwise, and in `torch.onnx.export`, `losses` is empty.
            valid: bool, x's shape without D: False for padding, which gets no expert and is ignored by losses and
                statistics.
            token_id: integers, x's shape without D: the input of hash routing; None: the position of each token in its
                image.
            target: [B,E], non-negative, rows sum to 1: target distribution over experts of each image, for guided
                routers.
            priority: numbers, x's shape without D: tokens with larger values get expert capacity first, if capacity has
                priority "given".
            seed: [] int64 tensor (or int), seed of the router's random samples.
            samples: tensors to use instead of random samples, by name: "noise" and "ties" [N,E], "jitter" [N,D] (switch_top1),
                "second" [N,1] and "second_expert" [N,E] (gshard_top2), "group_noise" (hierarchical), "draw" [N,E]
                (random). Samples that the router does not need in this call (in evaluation, or without noise) are ignored.

        Returns:
            A `Routing`; for `soft_moe` a `SoftRouting`.

        Several threads may call a router at once. If another thread writes to its weights in place meanwhile, the routing is
        one of a mixture of old and new weights. Moving or converting the router meanwhile is not allowed.

        Raises:
            RuntimeError: wrong shapes, dtypes or devices. ValueError: samples that the router does not have; a missing
            `priority` that the capacity needs; a seed out of range. TypeError: a seed that is not an integer.
        """
        if x.shape[-1] != self.dim:
            raise RuntimeError(f"tokens of width {x.shape[-1]}, the router was made for dim = {self.dim}")
        tokens = x.reshape(-1, x.shape[-1])
        images = 1 if x.dim() == 2 else math.prod(x.shape[:-2])
        config = self._configs[self.training, with_losses]
        valid, token_id, priority = _flat("valid", valid, x), _flat("token_id", token_id, x), _flat("priority", priority, x)
        samples = samples or {}
        for name in samples:  # the operator takes the names joined by commas and checks whether they exist
            if self.soft or not isinstance(name, str) or not name or "," in name:
                takes = ", ".join(self.sample_names) or "no samples"
                raise ValueError(f'unknown samples "{name}": the router {self.name} takes {takes}')
        if _onnx.exporting():
            return _onnx_routers.route(self, x, valid)
        if self.soft:
            dispatch, combine, logits = ops.mix(config, tokens, images, self._weights(), valid)
            return SoftRouting(dispatch, combine, logits, {}, logits.new_zeros(()))
        if seed is None:
            seed = (torch.randint(0, 2**62, (), dtype=torch.int64, device="cpu") if self.training else
                    torch.zeros((), dtype=torch.int64, device="cpu"))
        elif not isinstance(seed, torch.Tensor):
            seed = torch.tensor(_checks.integer("seed", seed, -2**63), dtype=torch.int64, device="cpu")
        gate, values, logits, scores, token, expert, rank, kept, count, *of_groups, metrics = ops.route(
            config, tokens, images, self._weights(), seed, valid, token_id, target, ",".join(samples), list(samples.values()),
            priority)
        # A program of torch.export cannot be loaded again if it unbinds an empty tensor.
        losses = dict(zip(self.loss_weights, values.unbind())) if with_losses and self.loss_weights else {}
        loss = sum((losses[name] * weight for name, weight in self.loss_weights.items() if with_losses), gate.new_zeros(()))
        metrics = dict(zip(self.metric_names, metrics.detach().unbind())) if self.metric_names else {}
        return Routing(token, expert, rank, gate, kept, logits, scores, count, valid, losses, loss,
                       *(of_groups if self.groups else (None, None)), metrics)

    @torch.no_grad()
    def post_step_update(self, *routings):
        """Updates the biases or thresholds of routers that learn from routings; does nothing for others.

        Call it after the optimiser step with the routings of all batches of that step. For DeepSeek-V3's `sigmoid_bias`
        this is the load balancing mechanism (Wang et al. 2024, algorithm 1); the `balanced_` routers learn the
        thresholds that they use in evaluation (Shazeer et al. 2017, appendix F).
        """
        if not self.needs_post_step_update or not routings:
            return
        for r in routings:
            sizes = r.scores.shape[1], 0 if r.group_scores is None else r.group_scores.shape[1]
            if sizes != (self.experts, self.groups):
                raise RuntimeError("post_step_update takes routings of this router: experts and groups are "
                                   f"{(self.experts, self.groups)}, those of the routing {sizes}")
        valid = [torch.ones_like(r.scores[:, 0], dtype=torch.bool) if r.valid is None else r.valid for r in routings]
        moved = ops.router_post_step_update(self._configs[True, True], self.dim, self._weights(),
                                      [r.scores.detach() for r in routings], [r.chosen_count for r in routings], valid,
                                      [r.group_scores.detach() for r in routings if self.groups],
                                      [r.group_chosen.sum(0) for r in routings if self.groups])
        for old, new in zip(self._weights(), moved):
            old.copy_(new)
