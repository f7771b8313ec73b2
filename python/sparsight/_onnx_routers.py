"""Routers in evaluation, in operations that ONNX has; see _onnx.py. The formulas are those of docs/routing.md."""
import json

import torch
import torch.nn.functional as F

from ._onnx import order_tokens
from .routing import Routing, SoftRouting


def route(router, x, valid):
    """What `router` (a `sparsight.Router`) decides in evaluation, without losses.

    x: [...,S,D] or [N,D]. valid: [N] bool or None, as in `Router.forward`.

    Raises:
        NotImplementedError: a router or a setting that has no form in ONNX.
    """
    given = json.loads(router._settings)
    settings = {**router._defaults, **given["router"]}
    _check(router, settings, given["capacity"])
    wide = torch.float64 if any(w.dtype == torch.float64 for w in router._weights()) else torch.float32
    weights = {name: getattr(router, name).to(wide) for name in router._weight_names}
    x = (x.unsqueeze(0) if x.dim() == 2 else x).to(wide)
    x = x.reshape(-1, x.shape[-2], x.shape[-1])  # [B,S,D]
    if valid is not None:
        valid = valid.reshape(-1, x.shape[1])
        x = x.masked_fill(~valid.unsqueeze(2), 0)
    if router.soft:
        return _soft(x, weights, settings, valid)
    settings.update(experts=router.experts, dim=router.dim, prefix=given["prefix"])
    rows = _image_rows(x, weights, settings, valid) if router.name == "per_image" else x.reshape(-1, x.shape[2])
    logits, scores, order, gate, used = _ROUTERS[router.name](rows, weights, settings)
    if router.name == "per_image":
        logits, scores, order, gate = (_spread(t, x.shape[1]) for t in (logits, scores, order, gate))
    used = torch.ones_like(order, dtype=torch.bool) if used is None else used
    if valid is not None:
        used = used & valid.reshape(-1, 1)
    expert = torch.where(used, order, torch.full_like(order, -1))
    gate = torch.where(used, gate, torch.zeros_like(gate))
    rank = torch.ones_like(order).cumsum(1) - 1
    count = torch.stack([(expert == e).sum() for e in range(router.experts)])
    # Routers without a fixed number of experts per token list here the choices that are not made too.
    return Routing(order_tokens(order), expert.reshape(-1), rank.reshape(-1), gate.reshape(-1), used.reshape(-1), logits, scores,
                   count, None if valid is None else valid.reshape(-1), {}, gate.new_zeros(()))


def _check(router, settings, capacity):
    if router.training:
        raise NotImplementedError("a router in training has no form in ONNX: call model.eval() before the export")
    if not router.soft and router.name not in _ROUTERS:
        raise NotImplementedError(f"the router {router.name} has no form in ONNX (those that have one: "
                                  f"{', '.join(sorted([*_ROUTERS, 'soft_moe']))})")
    if settings.get("eval_noise") or settings.get("ties") == "random" or settings.get("eval_second") == "random":
        raise NotImplementedError(f"random choices of the router {router.name} in evaluation have no form in ONNX: switch off "
                                  "eval_noise, ties and eval_second")
    factor, in_evaluation = capacity.get("factor", 0), capacity.get("eval_factor", -1)
    if not router.soft and (factor if in_evaluation < 0 else in_evaluation) > 0:
        raise NotImplementedError('a limited capacity has no form in ONNX: make the layer with capacity={"factor": '
                                  f'{factor}, "eval_factor": 0}}')


def _k(settings):
    k = settings.get("eval_k", 0) or settings.get("k", 0)
    return k or settings["experts"]


def _logits(x, weights):
    return x @ weights["weight"].t()


def _best(values, k):
    return values.topk(k, dim=1)[1]


# Each takes tokens [N,D] and returns logits [N,E], scores [N,E], order [N,K], gate [N,K] and which choices are made, [N,K]
# or None for all.


def _softmax_topk(logits, k, renormalize):
    scores, order = logits.softmax(1), _best(logits, k)
    gate = scores.gather(1, order)
    return logits, scores, order, gate / gate.sum(1, keepdim=True) if renormalize else gate, None


def _noisy_topk(x, weights, s):
    logits = _logits(x, weights)
    order = _best(logits, _k(s))
    return logits, logits.softmax(1), order, logits.gather(1, order).softmax(1), None


def _gshard_top2(x, weights, s):
    logits = _logits(x, weights)
    order = _best(logits, _k(s))
    gate = logits.gather(1, order).softmax(1)
    first = torch.ones_like(order).cumsum(1) == 1
    used = {"all": None, "none": first, "threshold": first | (gate > s["threshold"])}[s["eval_second"]]
    return logits, logits.softmax(1), order, gate, used


def _cosine(x, weights, s):
    unit = lambda rows, axis: rows / torch.linalg.vector_norm(rows, dim=axis, keepdim=True).clamp_min(1e-12)
    direction = unit(x @ weights["projector"].t() + weights["projector_bias"], 1)
    scale = weights["log_scale"].clamp_max(4.605170185988092).exp()  # ln 100
    k = _k(s)
    return _softmax_topk(direction @ (unit(weights["codebook"], 0) * scale), k,
                         s["renormalize"] == "on" or (s["renormalize"] == "auto" and k > 1))


def _sigmoid_bias(x, weights, s):
    logits, k = _logits(x, weights), _k(s)
    scores = logits.sigmoid()
    biased = scores + weights["bias"]
    if s["kept_groups"] < s["groups"]:
        parts = biased.reshape(-1, s["groups"], s["experts"] // s["groups"])
        of_group = parts.topk(max(1, k // s["kept_groups"]), dim=2)[0].sum(2)
        allowed = torch.zeros_like(of_group).scatter(1, _best(of_group, s["kept_groups"]), 1.0) > 0
        biased = parts.masked_fill(~allowed.unsqueeze(2), float("-inf")).reshape(-1, s["experts"])
    order = _best(biased, k)
    gate = scores.gather(1, order)
    return logits, scores, order, s["scale"] * gate / gate.sum(1, keepdim=True), None


def _base(x, weights, s):
    logits = _logits(x, weights)
    order = _best(logits, _k(s))
    return logits, logits.sigmoid(), order, logits.sigmoid().gather(1, order), None


def _sinkhorn(x, weights, s):
    logits = _logits(x, weights)
    order = _best(logits, _k(s))
    scores = logits.softmax(1) if s["gate"] == "softmax" else logits.sigmoid()
    return logits, scores, order, scores.gather(1, order), None


def _relu(x, weights, s):
    logits = _logits(x, weights)
    order, scores = _best(logits, s["experts"]), logits.relu()
    gate = scores.gather(1, order)
    return logits, scores, order, gate, gate > 0


def _top_p(x, weights, s):
    logits = _logits(x, weights)
    scores, order = logits.softmax(1), _best(logits, s["max_k"] or s["experts"])
    gate = scores.gather(1, order)
    return logits, scores, order, gate, gate.cumsum(1) - gate < s["p"]


_plain_softmax = lambda x, weights, s: _softmax_topk(_logits(x, weights), _k(s), s.get("renormalize", False))
_ROUTERS = {"softmax_topk": _plain_softmax, "switch_top1": _plain_softmax, "dense_softmax": _plain_softmax,
            "per_image": _plain_softmax, "noisy_topk": _noisy_topk, "gshard_top2": _gshard_top2, "cosine": _cosine,
            "sigmoid_bias": _sigmoid_bias, "base": _base, "sinkhorn": _sinkhorn, "relu": _relu, "top_p": _top_p}


def _image_rows(x, weights, s, valid):
    """[B,D]: the vector by which `per_image` routes each image of x, [B,S,D]."""
    if s["input"] == "class_token" or (s["input"] == "auto" and s["prefix"] > 0):
        rows = x.select(1, 0)
    else:
        first = s["prefix"] if s["input"] == "mean_patches" else 0
        patches = x[:, first:]
        rows = patches.mean(1) if valid is None else patches.sum(1) / valid[:, first:].sum(1, keepdim=True).clamp_min(1)
    if s["norm"] == "none":
        return rows
    return F.layer_norm(rows, (s["dim"],), weights.get("norm_weight"), weights.get("norm_bias"), 1e-6)


def _spread(rows, times):
    """[B,n] -> [B * times,n]: each row for every token of its image."""
    return rows.unsqueeze(1).expand(-1, times, -1).reshape(-1, rows.shape[1])


def _soft(x, weights, s, valid):
    phi = weights["weight"]
    if s["normalize"]:
        unit = lambda rows: rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_min(1e-12)
        x, phi = unit(x), weights["scale"] * unit(phi)
    logits = x @ phi.t()  # [B,S,P]
    real = None if valid is None else valid.unsqueeze(2)
    of_slot = logits if real is None else logits.masked_fill(~real, float("-inf"))
    dispatch, combine = of_slot.softmax(1), logits.softmax(2)
    if real is not None:
        dispatch, combine = dispatch.masked_fill(~real, 0), combine.masked_fill(~real, 0)
    return SoftRouting(dispatch, combine, logits, {}, logits.new_zeros(()))
