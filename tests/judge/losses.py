"""Every balance loss in NumPy and float64, from its paper. Each takes a Layer (layers.py), a Decision (routers.py) and the variants
of [losses], and returns a number, or None if the decision has no such loss. Letters: sparsight/moe/axes.md.
"""
import math

import numpy as np


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def cv_squared(v, unbiased=False):
    """Shazeer et al. 2017, equation 7: variance over mean squared; 0 if the mean is 0."""
    if len(v) < 2 or v.mean() == 0:
        return 0.0
    return v.var(ddof=1 if unbiased else 0) / v.mean()**2


normal_cdf = np.vectorize(lambda z: 0.5 * math.erfc(-z / math.sqrt(2)), otypes=[float])


def load_probability(decision):
    """Shazeer et al. 2017, appendix A, equations 8 and 9: Phi((x W_g - kth_excluding) / noise scale); kth_excluding is the k-th
    largest noisy logit of the others."""
    noisy, k = decision.noisy, decision.per_token
    n, e = noisy.shape
    if k == e or decision.scale is None or n == 0:
        return np.ones((n, e))
    kth = np.stack([np.sort(np.delete(noisy, i, 1), 1)[:, ::-1][:, k - 1] for i in range(e)], 1)
    return normal_cdf((decision.logits - kth) / np.maximum(decision.scale, 1e-6))


def _by_group(layer, value):
    """The mean over groups (of capacity) with tokens."""
    groups = [value(tokens) for tokens in layer.groups() if len(tokens)]
    return float(np.mean(groups)) if groups else 0.0


def importance(layer, d, v):
    """Shazeer et al. 2017, equations 6 and 7, of the gates before capacity."""
    return cv_squared(np.bincount(d.expert, d.gate, layer.experts), v["unbiased_variance"])


def load(layer, d, v):
    """Shazeer et al. 2017, equations 10 and 11; hierarchical: equation 14."""
    if d.load is not None:
        return cv_squared(d.load, v["unbiased_variance"])
    if d.logits is None or d.scale is None or not d.per_token or d.varying:
        return None
    return cv_squared(load_probability(d)[layer.real].sum(0), v["unbiased_variance"])


def vmoe_importance(layer, d, v):
    """V-MoE (Riquelme et al. 2021), appendix A.2: of softmax(W x), without noise, averaged over groups."""
    if d.logits is None:
        return None
    p = softmax(d.logits)
    return _by_group(layer, lambda tokens: cv_squared(p[tokens].sum(0), v["unbiased_variance"]))


def vmoe_load(layer, d, v):
    """V-MoE, appendix A.2: P(logit + new noise >= the k-th largest noisy logit); "scores": as in GMoE's library."""
    if d.logits is None or d.scale is None or not d.per_token or d.varying:
        return None
    kth = np.sort(d.noisy, 1)[:, ::-1][:, d.per_token - 1, None]
    value = softmax(d.logits) if v["vmoe_load_of"] == "scores" else d.logits
    p = normal_cdf((value - kth) / np.maximum(d.scale, 1e-6))
    return _by_group(layer, lambda tokens: cv_squared(p[tokens].sum(0), v["unbiased_variance"]))


def switch(layer, d, v):
    """Switch (Fedus et al. 2021), equations 4 to 6: E sum f_i P_i, f counting first choices (GShard, Switch), all over k
    (Megatron-LM) or all (Flaxformer); "gshard": (1/E) sum, as printed in GShard, algorithm 1."""
    if d.logits is None or not d.per_token:
        return None
    counts = v["switch_counts"]
    if counts == "auto":
        counts = {"gshard_top2": "first", "top_p": "sum"}.get(layer.router, "mean")  # as in their papers
        if layer.router == "softmax_topk" and layer.experts == 2:
            counts = "first"
    p, e = softmax(d.noisy), layer.experts

    def of_group(tokens):
        counted = np.isin(d.token, tokens) & ((d.rank == 0) | (counts != "first"))
        f = np.bincount(d.expert[counted], minlength=e) / len(tokens) / (d.per_token if counts == "mean" else 1)
        return (f * p[tokens].mean(0)).sum() * (e if v["switch_form"] == "switch" else 1 / e)

    return _by_group(layer, of_group)


def router_z(layer, d, v):
    """ST-MoE (Zoph et al. 2022), equation 5: the mean squared logsumexp."""
    if d.logits is None:
        return None
    rows = d.logits[layer.real]
    return float(np.square(np.logaddexp.reduce(rows, 1)).mean()) if len(rows) else 0.0


def threshold(layer, d, v):
    """Shazeer et al. 2017, appendix F, equation 20: sum of (M_threshold - M_batchwise) (score - threshold); two levels: of both."""
    if d.threshold is None:
        return None
    chosen = np.zeros(d.scores.shape, bool)
    chosen[d.token, d.expert] = True
    rows = (d.scores > d.threshold).astype(float) - chosen
    value = (rows * (d.scores - d.threshold))[layer.real].sum()
    if d.groups is None:
        return value
    value = 0.0  # of the second level: in each group the tokens that it took
    size = layer.experts // layer.settings["groups"]
    for j, i in zip(d.groups.token, d.groups.expert):
        columns = slice(i * size, (i + 1) * size)
        value += (rows[j, columns] * (d.scores - d.threshold)[j, columns]).sum()
    return value + threshold(layer, d.groups, v)


def sequence_balance(layer, d, v):
    """DeepSeek-V3, equations 17 to 20: in each sequence E / (K T) * (tokens with e among the K best scores) * its mean share."""
    if d.scores is None or not d.per_token or d.varying:
        return None
    values = []
    for image in np.arange(layer.tokens).reshape(layer.images, -1):
        s = d.scores[image[layer.real[image]]]
        if len(s) == 0:
            continue
        top = np.argsort(-s, axis=1, kind="stable")[:, :d.per_token]
        f = np.bincount(top.ravel(), minlength=layer.experts) * layer.experts / (d.per_token * len(s))
        total = s.sum(1, keepdims=True)
        values.append((f * (s / np.where(total == 0, 1, total)).mean(0)).sum())
    return float(np.mean(values)) if values else 0.0


def superclass(layer, d, v):
    """Mobile V-MoE (Daxberger et al. 2023), section 3: cross-entropy of the softmax before top-k against the super-class, a mean
    over tokens and then over images."""
    if d.logits is None or layer.target is None:
        return None
    log_p = d.logits - np.logaddexp.reduce(d.logits, 1)[:, None]
    values = []
    for b, image in enumerate(np.arange(layer.tokens).reshape(layer.images, -1)):
        rows = log_p[image[layer.real[image]]]
        if len(rows):
            values.append(-(rows * layer.target[b]).sum(1).mean())
    return float(np.mean(values)) if values else 0.0


def separation(layer, d, v):
    """pMoE (Chowdhury et al. 2023), equation 6, and appendix M.1 for pairs of classes: minus the sum over e of the mean over the
    images of the pair of y_e <w_e, sum of the image's tokens>, y_e = target of class e minus that of the other class of its pair
    (e + 1 for even e, e - 1 for odd e; the last of an odd number: class 0)."""
    if d.logits is None or layer.target is None:
        return None
    if layer.experts == 1:
        return 0.0
    value, images = 0.0, np.arange(layer.tokens).reshape(layer.images, -1)
    for e in range(layer.experts):
        other = e ^ 1 if e ^ 1 < layer.experts else 0
        pair = (layer.target[:, e] + layer.target[:, other]) * [layer.real[image].any() for image in images]
        for b, image in enumerate(images):
            if pair.sum() > 0:
                y = layer.target[b, e] - layer.target[b, other]
                value -= y * d.logits[image[layer.real[image]], e].sum() / pair.sum()
    return value


def _entropy(p):
    return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(-1)


def entropy(layer, d, v):
    """LIMoE (Mustafa et al. 2022), section 2.2, the local loss; Huang et al. 2024, section 3.3."""
    if d.logits is None:
        return None
    p = softmax(d.logits)[layer.real]
    return float(_entropy(p).mean()) if len(p) else 0.0


def marginal_entropy(layer, d, v):
    """LIMoE, the global loss, from ln E: ln E - H(mean p)."""
    if d.logits is None:
        return None
    p = softmax(d.logits)[layer.real]
    return float(np.log(layer.experts) - _entropy(p.mean(0))) if len(p) else 0.0


def mutual_information(layer, d, v):
    """Mod-Squad (Chen et al. 2023), section 3.2: ln E - sum over tokens and experts of P(t,e) ln (P(t,e) / (P(t) P(e)))."""
    if d.logits is None:
        return None
    joint = softmax(d.logits)[layer.real]
    if len(joint) == 0:
        return 0.0
    joint = joint / len(joint)
    product = joint.sum(1, keepdims=True) * joint.sum(0)
    return float(np.log(layer.experts) - (joint * np.log(joint / product)).sum())


# The weights of the routers' papers.
DEFAULTS = {
    "softmax_topk": {"vmoe_importance": 0.005, "vmoe_load": 0.005},  # V-MoE, appendix A.2: 0.01 times the mean of both
    "cosine": {"vmoe_importance": 0.005, "vmoe_load": 0.005},
    "noisy_topk": {"importance": 0.1, "load": 0.1},  # Shazeer et al. 2017, section 5 and table 6
    "hierarchical": {"importance": 0.1, "load": 0.1},
    "gshard_top2": {"switch": 0.01},
    "switch_top1": {"switch": 0.01},  # Fedus et al. 2021, section 2.2
    "sigmoid_bias": {"sequence_balance": 1e-4},  # DeepSeek-V3, section 4.2
    "balanced_batchwise": {"importance": 0.01},  # Shazeer et al. 2017, appendix E
    "balanced_hierarchical": {"importance": 0.01},
    "per_image": {"superclass": 0.3},  # Daxberger et al. 2023, section 3
    "top_p": {"switch": 0.01, "entropy": 1e-4},  # Huang et al. 2024, section 4.1
}

NEED_NOISE = ("load", "vmoe_load")


def defaults(layer):
    """Without noise there is no load loss. V-MoE's router of two experts trains with GShard's loss (Puigcerver et al. 2022)."""
    if layer.router == "softmax_topk" and layer.experts == 2:
        return {"switch": 0.01}
    return {name: weight for name, weight in DEFAULTS.get(layer.router, {}).items()
            if layer.has_noise() or name not in NEED_NOISE}


LOSSES = {f.__name__: f for f in (importance, load, vmoe_importance, vmoe_load, switch, router_z, threshold, sequence_balance,
                                  superclass, separation, entropy, marginal_entropy, mutual_information)}
