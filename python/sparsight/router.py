"""Every router of the library, as a module."""
import json
import math
import numbers

import torch
from torch import nn

from . import _checks
from ._library import describe, ops
from .routing import Routing, SoftRouting


def routers():
    """All routers: {name: {"summary": text, "options": [{"name", "type", "allowed", "default", "help"}, ...]}}."""
    return json.loads(ops.list_routers())


def _flat(name, given, x):
    """What is given for each token, as [N]."""
    if given is not None and given.shape != x.shape[:-1]:
        raise RuntimeError(f"{name} has the shape {list(given.shape)}, expected {list(x.shape[:-1])}: that of x without D")
    return None if given is None else given.reshape(-1)


class Router(nn.Module):
    """Chooses experts for tokens.

        router = sparsight.Router("noisy_topk", dim=384, experts=8, k=2)
        routing = router(x)                      # x: [B,S,D] or [N,D]; a sparsight.Routing
        loss = task + routing.loss               # the balance losses of the router's paper

    The decision is made by the library's C++ code in one operator, `torch.ops.sparsight.route`, in fp32 (fp64 for fp64
    weights) whatever the type of the tokens, also under autocast. Its derivative is the operator's own: gates, scores, logits
    and losses carry gradients to the tokens and to the router's weights. It has no second derivative.

    Noise (in training, of routers that have it) is drawn from a seed that torch's default generator gives at each call, so
    `torch.manual_seed` repeats it; `seed` and `samples` set it explicitly.

    Args:
        name: one of `sparsight.routers()`. Each entry there names the paper; docs/routing.md has them all.
        dim: width D of the tokens.
        experts: E.
        prefix: leading tokens of each image that are no patch (class token), 0 or more; `per_image` routing looks at it.
        capacity: rows that an expert takes, as a factor of its even share, or a dict of the settings of
            docs/routing.md#capacity (`{"factor": 1.25, "priority": "max_gate"}`). None: no limit.
        losses: weights of balance losses by name (docs/routing.md#losses), and their variants. Losses that it does not name
            have the weight of the router's paper; 0 switches one off. One that the router cannot have, as it is set or now,
            is 0: docs/python.md#routers lists which.
        seed: of the initial weights, which are the library's; None: drawn from torch's default generator. `hash`, which has
            no weights, takes it as its own option `seed`: which hash function; None: 0.
        options: the router's own settings, `sparsight.routers()[name]["options"]`: k, noise, temperature, ...

    Raises:
        ValueError: unknown router, option or loss (the message names the nearest one), a value out of its range, or an option,
            weight or setting of capacity of another type than it has.
        TypeError: one of the arguments above of another type, or an option that is no number, text or list.

    The names of parameters and buffers are those of the library's checkpoints: `weight`, `noise_weight`, `bias`, ...
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
        # The texts that the operators take, by (training, with losses).
        self._configs = {(training, with_losses): json.dumps(
            {**settings, "training": training, **({"losses": losses} if with_losses else {})})
            for training in (False, True) for with_losses in (False, True)}
        info = describe(self._configs[True, True], dim)
        #: whether the router mixes tokens (Soft MoE) instead of choosing experts
        self.soft = info["soft"]
        #: whether it wants `post_step_update` (sigmoid_bias, balanced_batchwise, balanced_hierarchical)
        self.needs_post_step_update = info["learns"]
        #: weights of the losses that `routing.loss` sums up
        self.loss_weights = dict(info["losses"])
        #: K while training, or 0 where the number of a token's experts is not fixed
        self.per_token = info["per_token"]
        #: G of a router that chooses groups of experts first and balances them too (balanced_hierarchical), or 0
        self.groups = info["groups"]
        #: names of what the router reports about each routing (`routing.metrics`)
        self.metric_names = tuple(info["metrics"])
        #: names of the samples that `forward` takes
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
        """Draws the weights as the library does for this seed (an integer from 0); None: a seed from torch's generator.

        Weights on the device "meta" have no values to draw.
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

    def forward(self, x, *, with_losses=True, valid=None, token_id=None, target=None, priority=None, seed=None, samples=None):
        """Routes tokens.

        Args:
            x: [...,S,D] (every leading index is an image) or [N,D] (one image), floating point.
            with_losses: compute the balance losses; else `losses` is empty.
            valid: bool, of x's shape without D: False for padding, which gets no expert and counts in nothing.
            token_id: integers, likewise: what hash routing goes by; None: the place of a token in its image.
            target: [B,E], at least 0, rows that sum to 1: the experts that a guided router should give each image.
            priority: numbers, of x's shape without D: who gets a place first, for a capacity with the priority "given".
            seed: [] int64 tensor (or int) that the router's random samples follow from.
            samples: tensors in place of random samples, by purpose: {"noise": [N,E]}; "jitter" [N,D] (switch_top1), "second" [N,1]
                and "second_expert" [N,E] (gshard_top2), "group_noise" (hierarchical), "draw" [N,E] (random). Those that the
                router takes but does not draw now (in evaluation, or without noise) are not looked at.

        Returns:
            A `Routing`, or a `SoftRouting` of `soft_moe`.

        Raises:
            RuntimeError: shapes, types and devices that do not fit. ValueError: samples that the router does not take; no
            `priority` where the capacity goes by it; a seed out of range. TypeError: a seed that is no integer.
        """
        if x.shape[-1] != self.dim:
            raise RuntimeError(f"tokens of width {x.shape[-1]}, the router was made for dim = {self.dim}")
        tokens = x.reshape(-1, x.shape[-1])
        images = 1 if x.dim() == 2 else math.prod(x.shape[:-2])
        config = self._configs[self.training, with_losses]
        valid, token_id, priority = _flat("valid", valid, x), _flat("token_id", token_id, x), _flat("priority", priority, x)
        samples = samples or {}
        for name in samples:  # the names go to the operator between commas; it knows which there are
            if self.soft or not isinstance(name, str) or not name or "," in name:
                takes = ", ".join(self.sample_names) or "no samples"
                raise ValueError(f'unknown samples "{name}": the router {self.name} takes {takes}')
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
        losses = dict(zip(self.loss_weights, values.unbind())) if with_losses else {}
        loss = sum((losses[name] * weight for name, weight in self.loss_weights.items() if with_losses), gate.new_zeros(()))
        metrics = dict(zip(self.metric_names, metrics.detach().unbind()))
        return Routing(token, expert, rank, gate, kept, logits, scores, count, valid, losses, loss,
                       *(of_groups if self.groups else (None, None)), metrics)

    @torch.no_grad()
    def post_step_update(self, *routings):
        """Lets a router that learns from routings move its biases or thresholds; others do nothing.

        Call it after the optimiser's step, with the routings of all batches of the step. DeepSeek-V3's `sigmoid_bias`
        balances by nothing else (Wang et al. 2024, algorithm 1); the `balanced_` routers learn the thresholds that they
        evaluate with (Shazeer et al. 2017, appendix F).
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
