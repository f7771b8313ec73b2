"""Routers in NumPy and float64, from the formulas of their papers, independently of the library. Letters: sparsight/moe/axes.md.

A router is a function of a Layer (layers.py) and returns a Decision. Where the library documents a departure ("Differs from the
paper:" in its headers), the departure is what is written here. Routers whose experts choose tokens, and those of two levels:
expert_routers.py.
"""
import dataclasses
from typing import Optional

import assignment
import numpy as np


@dataclasses.dataclass
class Decision:
    token: np.ndarray  # [A]
    expert: np.ndarray  # [A]
    rank: np.ndarray  # [A]
    gate: np.ndarray  # [A]
    logits: Optional[np.ndarray] = None  # [N,E] before noise
    noisy: Optional[np.ndarray] = None  # [N,E] what selection saw
    scale: Optional[np.ndarray] = None  # [N,E] or []: standard deviation of the noise; None: no noise
    scores: Optional[np.ndarray] = None  # [N,E]
    threshold: Optional[np.ndarray] = None  # [E]
    per_token: int = 0  # K, or 0 if experts choose tokens
    varying: bool = False  # tokens have different numbers of experts
    load: Optional[np.ndarray] = None  # [E] the router's own smooth load
    groups: Optional["Decision"] = None  # first level of two
    metrics: dict = dataclasses.field(default_factory=dict)
    own_losses: dict = dataclasses.field(default_factory=dict)  # {name: (value, weight)}


@dataclasses.dataclass
class Mixture:
    """Soft MoE: [B,S,P]."""
    logits: np.ndarray
    dispatch: np.ndarray
    combine: np.ndarray


def softmax(x, axis=-1, among=None):
    """Over the entries where `among` is true; 0 elsewhere."""
    x = np.where(among, x, -np.inf) if among is not None else x
    top = x.max(axis, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def best(values, k):
    """[N,E] -> [N,k]: the largest first; equal ones by the lowest index."""
    return np.argsort(-values, axis=1, kind="stable")[:, :k]


def at(values, index):
    return np.take_along_axis(values, index, 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_token(layer, order, gate, used=None, **rest):
    """order, gate [N,K]: token j's choices by rank. used: choices that are made. Padding chooses nothing."""
    n, k = order.shape
    made = np.broadcast_to(layer.real[:, None], (n, k)) & (True if used is None else used)
    token, rank = np.nonzero(made)
    decision = Decision(token, order[token, rank], rank, gate[token, rank], per_token=k, **rest)
    if decision.logits is not None and decision.noisy is None:
        decision.noisy = decision.logits
    return decision


def by_expert(layer, picks, gate, **rest):
    """picks: {expert: [lists of tokens, the best first]}; gate [N,E]."""
    rows = [(j, e, r) for e, lists in picks.items() for tokens in lists for r, j in enumerate(tokens)]
    token, expert, rank = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    decision = Decision(token, expert, rank, gate[token, expert], **rest)
    if decision.noisy is None:
        decision.noisy = decision.logits
    return decision


def best_tokens(values, tokens, count):
    """The `count` of `tokens` with the largest values, the lowest index first among equals."""
    return tokens[np.argsort(-values[tokens], kind="stable")[:count]]


# ---- each token takes its best experts


def _best(layer, scores, k):
    """The k largest; of equal ones those with the lowest index, or with ties = "random" those with the lowest draw."""
    if layer.settings.get("ties") != "random":
        return best(scores, k)
    shuffled = np.argsort(layer.samples["ties"], axis=1, kind="stable")
    return at(shuffled, best(at(scores, shuffled), k))


def _vmoe(layer, logits, epsilon, noise, k, renormalize):
    """V-MoE (Riquelme et al. 2021), section 2.2: TOP_k(softmax(W x + eps)), eps ~ N(0, 1/E^2)."""
    std = noise / logits.shape[1]
    noisy = logits if epsilon is None or std == 0 else logits + std * epsilon
    scores = softmax(noisy)
    order = _best(layer, noisy, k)
    gate = at(scores, order)
    if renormalize:
        gate = gate / gate.sum(1, keepdims=True)
    return order, gate, dict(logits=logits, noisy=noisy, scores=scores,
                             scale=None if noisy is logits else np.float64(std))


def softmax_topk(layer):
    s = layer.settings
    order, gate, rest = _vmoe(layer, layer.x @ layer.weights["weight"].T, layer.noise("noise"), s["noise"], layer.k(),
                              s["renormalize"])
    return by_token(layer, order, gate, **rest)


def cosine(layer):
    """GMoE (Li et al. 2023), section 4.2: softmax of cos(W x, e_i) / tau; the authors' code learns tau >= 0.01 and has a bias."""
    s, w = layer.settings, layer.weights
    projected = layer.x @ w["projector"].T + w["projector_bias"]
    unit = projected / np.linalg.norm(projected, axis=1, keepdims=True)
    logits = np.exp(min(w["log_scale"], np.log(100))) * unit @ (w["codebook"] / np.linalg.norm(w["codebook"], axis=0))
    k = layer.k()
    order, gate, rest = _vmoe(layer, logits, layer.noise("noise"), s["noise"], k,
                              k > 1 if s["renormalize"] == "auto" else s["renormalize"] == "on")
    return by_token(layer, order, gate, **rest)


def noise_scale(raw, floor):
    """Softplus (Shazeer et al. 2017, equation 4), with Tensor2Tensor's floor."""
    return np.logaddexp(0, raw) + floor


def _noisy(layer, logits, scale, epsilon, k):
    """Shazeer et al. 2017, equations 3 to 5: softmax over KeepTopK(x W_g + eps * softplus(x W_noise))."""
    noisy = logits if epsilon is None else logits + epsilon * scale
    order = _best(layer, noisy, k)
    return order, softmax(at(noisy, order)), dict(logits=logits, noisy=noisy, scores=softmax(noisy),
                                                  scale=None if epsilon is None else scale)


def noisy_topk(layer):
    s, w = layer.settings, layer.weights
    epsilon = layer.noise("noise") if s["noise"] else None
    scale = noise_scale(layer.x @ w["noise_weight"].T, s["noise_floor"])
    order, gate, rest = _noisy(layer, layer.x @ w["weight"].T, scale, epsilon, layer.k())
    return by_token(layer, order, gate, **rest)


def gshard_top2(layer):
    """GShard (Lepikhin et al. 2020), algorithm 1: g1, g2 over their sum; the second choice with probability 2 g2, or by the
    policies of Mesh-TensorFlow. sample_second (Lingvo): the second one from the softmax without the first, by Gumbel noise."""
    s, logits, k = layer.settings, layer.x @ layer.weights["weight"].T, layer.k()
    scores, ranked = softmax(logits), logits
    uniform = layer.noise("second_expert") if s["sample_second"] else None
    if uniform is not None:
        ranked = logits - np.log(-np.log(uniform))
        np.put_along_axis(ranked, best(logits, 1), np.inf, 1)
    order = best(ranked, k)
    gate = at(scores, order) / at(scores, order).sum(1, keepdims=True)
    policy, used = s["second"] if layer.training else s["eval_second"], np.ones(order.shape, bool)
    if policy == "none":
        used[:, 1:] = False
    elif policy == "threshold":
        used[:, 1:] = gate[:, 1:] > s["threshold"]
    elif policy == "random" and k > 1:
        used[:, 1:] = layer.samples["second"] < np.minimum(1, gate[:, 1:] / s["threshold"])
    return by_token(layer, order, gate, used, logits=logits, scores=scores)


def switch_top1(layer):
    """Switch (Fedus et al. 2021), section 2.1, with multiplicative jitter of the tokens (section 2.4)."""
    jitter, uniform = layer.settings["jitter"], layer.noise("jitter")
    x = layer.x if uniform is None else layer.x * (1 - jitter + 2 * jitter * uniform)
    logits = x @ layer.weights["weight"].T
    scores, order = softmax(logits), best(logits, layer.k())
    return by_token(layer, order, at(scores, order), logits=logits, scores=scores)


def sigmoid_bias(layer):
    """DeepSeek-V3, section 2.1.2, equations 12 to 16; a token uses experts of its best groups only: a group's score is the sum of
    its K / M largest biased scores (node-limited routing)."""
    s, logits, k = layer.settings, layer.x @ layer.weights["weight"].T, layer.k()
    scores = sigmoid(logits)
    biased = scores + layer.weights["bias"]
    if s["kept_groups"] < s["groups"]:
        n, e = biased.shape
        parts = biased.reshape(n, s["groups"], e // s["groups"])
        of_group = -np.sort(-parts, 2)[:, :, :max(1, k // s["kept_groups"])].sum(2)
        allowed = np.zeros((n, s["groups"]), bool)
        np.put_along_axis(allowed, best(of_group, s["kept_groups"]), True, 1)
        biased = np.where(allowed.repeat(e // s["groups"], 1), biased, -np.inf)
    order = best(biased, k)
    gate = at(scores, order)
    return by_token(layer, order, s["scale"] * gate / gate.sum(1, keepdims=True), logits=logits, scores=scores)


def dense_softmax(layer):
    """Shazeer et al. 2017, equation 2."""
    logits = layer.x @ layer.weights["weight"].T
    scores, order = softmax(logits), best(logits, layer.k() or layer.experts)
    return by_token(layer, order, at(scores, order), logits=logits, scores=scores)


def top_p(layer):
    """Huang et al. 2024, equations 3 to 5: the fewest experts whose probabilities reach p."""
    logits = layer.x @ layer.weights["weight"].T
    k = layer.settings["max_k"] or layer.experts
    scores, order = softmax(logits), best(logits, k)
    gate = at(scores, order)
    used = np.cumsum(gate, 1) - gate < layer.settings["p"]
    return by_token(layer, order, gate, used, logits=logits, scores=scores, varying=True)


def relu(layer):
    """ReMoE (Wang et al. 2024), equations 4 to 9: gates relu(x W); L1 loss weighted by f_e = E / (k N) * tokens of e."""
    s, logits = layer.settings, layer.x @ layer.weights["weight"].T
    scores, order = np.maximum(logits, 0), best(logits, layer.experts)
    gate = at(scores, order)
    decision = by_token(layer, order, gate, gate > 0, logits=logits, scores=scores, varying=True)
    n, used = max(1, layer.real.sum()), scores[layer.real] > 0
    weight = used.sum(0) * layer.experts / (s["mean_k"] * n) if s["balance"] else 1
    coefficient = layer.weights["l1_coefficient"]
    decision.metrics = {"sparsity": 1 - used.mean() if used.size else np.nan, "l1_coefficient": coefficient}
    if s["coefficient"] > 0:
        decision.own_losses["relu_l1"] = (coefficient * (weight * scores[layer.real]).sum() / n, 1)
    return decision


# ---- experts that do not depend on the token's values


def _fixed(layer, order):
    return by_token(layer, order, np.full(order.shape, 1 / order.shape[1]))


def splitmix64(state, index):
    """Output number `index` (from 0) of splitmix64 from `state` (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
    generators")."""
    wrap = (1 << 64) - 1
    z = (state + 0x9E3779B97F4A7C15 * (index + 1)) & wrap
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & wrap
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & wrap
    return z ^ (z >> 31)


def hash_(layer):
    """Hash layers (Roller et al. 2021): a fixed random function of the token's id, here splitmix64; choice q is one of the E - q
    experts that are left."""
    ids = np.arange(layer.tokens) % layer.per_image if layer.token_id is None else layer.token_id
    order = np.zeros((layer.tokens, layer.k()), np.int64)
    for j, number in enumerate(ids):
        key, left = splitmix64(layer.settings["seed"], int(number) % (1 << 64)), list(range(layer.experts))
        order[j] = [left.pop(splitmix64(key, q) % len(left)) for q in range(layer.k())]
    return _fixed(layer, order)


def random(layer):
    """THOR (Zuo et al. 2022): k experts at random, here those with the largest of E uniform numbers."""
    return _fixed(layer, best(layer.samples["draw"], layer.k()))


def round_robin(layer):
    number = np.arange(layer.tokens)[:, None] * layer.k() + np.arange(layer.k())
    return _fixed(layer, number % layer.experts)


def per_image(layer):
    """Mobile V-MoE (Daxberger et al. 2023), section 3: TOP_k(softmax(W LN(token))) once for an image."""
    s, w = layer.settings, layer.weights
    x, real = layer.x.reshape(layer.images, layer.per_image, -1), layer.real.reshape(layer.images, layer.per_image)
    if s["input"] == "class_token" or (s["input"] == "auto" and layer.prefix):
        row = x[:, 0]
    else:
        first = layer.prefix if s["input"] == "mean_patches" else 0
        weight = real[:, first:, None].astype(float)
        row = (x[:, first:] * weight).sum(1) / np.maximum(weight.sum(1), 1)
    if s["norm"] != "none":
        row = (row - row.mean(1, keepdims=True)) / np.sqrt(row.var(1, keepdims=True) + 1e-6)
    if s["norm"] == "affine":
        row = row * w["norm_weight"] + w["norm_bias"]
    order, gate, rest = _vmoe(layer, row @ w["weight"].T, layer.noise("noise"), s["noise"], layer.k(), s["renormalize"])
    if s["teacher_forced"] and layer.training:
        order = best(layer.target, 1)
        gate = np.ones(order.shape) if s["renormalize"] else at(rest["scores"], order)
    spread = lambda value: value if value is None or np.ndim(value) == 0 else value.repeat(layer.per_image, 0)
    return by_token(layer, spread(order), spread(gate), **{name: spread(value) for name, value in rest.items()})


# ---- balanced assignments


def base(layer):
    """BASE (Lewis et al. 2021), section 3: the assignment of largest total score with equally many tokens for all; gate sigmoid.
    The optimum need not be unique: the one found is accepted if its total is the largest one."""
    logits = layer.x @ layer.weights["weight"].T
    order = best(logits, layer.k())
    if layer.training:
        scores = logits[layer.real]
        seats = -(-len(scores) // layer.experts)
        optimum = assignment.largest_total(scores, seats)
        found = optimum if layer.found is None else layer.found
        total = lambda expert: scores[np.arange(len(scores)), expert].sum()
        assert len(found) == len(scores) and np.bincount(found, minlength=layer.experts).max(initial=0) <= seats
        # balanced_assignment.h promises N * 1e-5 of the range of the scores.
        short = total(optimum) - total(found) if len(scores) else 0
        allowed = 1e-5 * len(scores) * np.ptp(scores) + 1e-9 if len(scores) else 0
        assert short <= allowed, f"the assignment falls short of the optimum by {short}, more than {allowed}"
        order = np.zeros((layer.tokens, 1), np.int64)
        order[layer.real, 0] = found
    return by_token(layer, order, at(sigmoid(logits), order), logits=logits, scores=sigmoid(logits))


def sinkhorn(layer):
    """S-BASE (Clark et al. 2022), Cuturi 2013: rows scaled to 1, then columns to N/E, again and again; chosen are the largest of
    the balanced matrix, gates are those of the unbalanced logits."""
    s, logits = layer.settings, layer.x @ layer.weights["weight"].T
    ranked = logits
    if layer.training:
        matrix = np.exp((logits - logits.max()) / s["temperature"])[layer.real]
        column = np.ones(layer.experts)
        for _ in range(s["iterations"] if len(matrix) else 0):
            balanced = matrix * column
            balanced = balanced / balanced.sum(1, keepdims=True)
            column = column * len(matrix) / layer.experts / balanced.sum(0)
        ranked = logits / s["temperature"] + np.log(column)
    order = best(ranked, layer.k())
    scores = softmax(logits) if s["gate"] == "softmax" else sigmoid(logits)
    return by_token(layer, order, at(scores, order), logits=logits, scores=scores)


def soft_moe(layer):
    """Soft MoE (Puigcerver et al. 2024), sections 2.1 and 2.3."""
    x, phi = layer.x, layer.weights["weight"]
    if layer.settings["normalize"]:
        unit = lambda rows: rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        x, phi = unit(x), layer.weights["scale"] * unit(phi)
    logits = (x @ phi.T).reshape(layer.images, layer.per_image, -1)
    real = np.broadcast_to(layer.real.reshape(layer.images, layer.per_image, 1), logits.shape)
    return Mixture(logits, softmax(logits, 1, real), np.where(real, softmax(logits, 2), 0))


ROUTERS = {f.__name__.rstrip("_"): f for f in (
    softmax_topk, noisy_topk, gshard_top2, switch_top1, cosine, sigmoid_bias, dense_softmax, hash_, random, round_robin, per_image,
    base, sinkhorn, soft_moe, relu, top_p)}
