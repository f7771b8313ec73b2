"""Routers whose experts choose tokens, and those of two levels, in NumPy. As routers.py. G groups of b = E/G experts."""
import numpy as np
from routers import Decision, _noisy, at, best, best_tokens, by_expert, noise_scale, softmax
from losses import load_probability


def expert_choice(layer):
    """Zhou et al. 2022, section 3.2: each expert takes its ceil(c T / E) tokens of largest softmax over experts."""
    logits = layer.x @ layer.weights["weight"].T
    scores, picks = softmax(logits), {e: [] for e in range(layer.experts)}
    pools = 1 if layer.settings["pool"] == "batch" else layer.images
    for pool in np.arange(layer.tokens).reshape(pools, -1):
        tokens = pool[layer.real[pool]]
        share = layer.exact("experts_per_token") * len(tokens) / layer.experts
        count = min(len(tokens), max(1, -(-share.numerator // share.denominator)))
        for e in range(layer.experts):
            picks[e].append(best_tokens(scores[:, e], tokens, count))
    return by_expert(layer, picks, scores, logits=logits, scores=scores)


def patch_choice(layer):
    """pMoE (Chowdhury et al. 2023), equations 1 to 4: each expert takes the l patches of each image with the largest scores; class
    tokens are no patches."""
    logits, gate = layer.x @ layer.weights["weight"].T, np.zeros((layer.tokens, layer.experts))
    scores, picks = np.zeros_like(gate), {e: [] for e in range(layer.experts)}
    for image in np.arange(layer.tokens).reshape(layer.images, -1):
        tokens = image[layer.prefix:][layer.real[image[layer.prefix:]]]
        if len(tokens) == 0:
            continue
        scores[tokens] = softmax(logits[tokens], 0)
        for e in range(layer.experts):
            taken = best_tokens(logits[:, e], tokens, layer.choices("patches"))
            picks[e].append(taken)
            gate[taken, e] = {"ones": 1, "softmax_topl": scores[taken, e], "topl_softmax": softmax(logits[taken, e])}[
                layer.settings["gate"]]
    return by_expert(layer, picks, gate, logits=logits, scores=scores)


def _masked(layer, mask, order, logits, scores, threshold):
    """Shazeer et al. 2017, appendix F, equation 16: the softmax over the experts of the mask. order [N,E]: rank of each choice."""
    gate = softmax(logits, 1, mask)
    token, expert = np.nonzero(mask)
    return Decision(token, expert, order[token, expert], gate[token, expert], logits=logits, noisy=logits, scores=scores,
                    threshold=threshold)


def _batchwise(layer, logits, tokens, count, threshold):
    """Equation 18: each expert takes the `count` of `tokens` with its largest scores."""
    scores = softmax(logits)
    mask, order = np.zeros(logits.shape, bool), np.zeros(logits.shape, np.int64)
    for e in range(logits.shape[1]):
        taken = best_tokens(scores[:, e], tokens, count)
        mask[taken, e], order[taken, e] = True, np.arange(len(taken))
    return _masked(layer, mask, order, logits, scores, threshold)


def _above(layer, logits, tokens, threshold, k):
    """Equation 19: scores above the threshold; with k, each token's best instead."""
    scores, among = softmax(logits), np.zeros(len(logits), bool)
    among[tokens] = True
    mask, order = scores > threshold, np.zeros(logits.shape, np.int64)
    if k:
        mask = np.zeros_like(mask)
        np.put_along_axis(mask, best(logits, k), True, 1)
        np.put_along_axis(order, best(logits, k), np.arange(k)[None], 1)
    mask = mask & among[:, None]
    if not k:
        for e in range(logits.shape[1]):
            taken = best_tokens(scores[:, e], np.nonzero(mask[:, e])[0], None)
            order[taken, e] = np.arange(len(taken))
    decision = _masked(layer, mask, order, logits, scores, threshold)
    decision.per_token = k
    return decision


def balanced_batchwise(layer):
    logits, tokens = layer.x @ layer.weights["weight"].T, np.nonzero(layer.real)[0]
    threshold = layer.weights["threshold"]
    if layer.training:
        return _batchwise(layer, logits, tokens, layer.settings["k"] * len(tokens) // layer.experts, threshold)
    return _above(layer, logits, tokens, threshold, layer.settings["eval_k"])


def _product(layer, primary, parts, order_by_gate):
    """Appendix B, equation 12: expert (i, j) is i b + j, its gate G_i times G_ij."""
    dense = np.zeros((layer.tokens, layer.experts // layer.settings["groups"] * layer.settings["groups"]))
    primary_gate = np.zeros((layer.tokens, layer.settings["groups"]))
    primary_gate[primary.token, primary.expert] = primary.gate
    size = layer.experts // layer.settings["groups"]
    rows = []
    for i, part in enumerate(parts):
        for token, expert, rank, gate in zip(part.token, part.expert, part.rank, part.gate):
            rows.append((token, i * size + expert, rank, gate * primary_gate[token, i]))
    token, expert, rank = np.array([row[:3] for row in rows], np.int64).reshape(-1, 3).T
    gate = np.array([row[3] for row in rows], float)
    if order_by_gate:
        rank = np.zeros(len(token), np.int64)
        for j in range(layer.tokens):
            mine = np.nonzero(token == j)[0]
            rank[mine[np.lexsort((expert[mine], -gate[mine]))]] = np.arange(len(mine))
    return token, expert, rank, gate


def hierarchical(layer):
    """Appendix B, equations 12 to 14: noisy top-k of groups, then of the experts of each; Load_H = Load_p Load_i / |X_i|."""
    s, w, groups = layer.settings, layer.weights, layer.settings["groups"]
    size = layer.experts // groups
    k_groups, k = layer.choices("k_groups"), layer.k()
    noise = lambda name: layer.noise(name) if s["noise"] else None
    order, gate, rest = _noisy(layer, layer.x @ w["group_weight"].T,
                               noise_scale(layer.x @ w["group_noise_weight"].T, s["noise_floor"]), noise("group_noise"), k_groups)
    made = np.broadcast_to(layer.real[:, None], order.shape)
    token, rank = np.nonzero(made)
    primary = Decision(token, order[token, rank], rank, gate[token, rank], per_token=k_groups, **rest)
    epsilon, parts = noise("noise"), []
    scores, load = np.zeros((layer.tokens, layer.experts)), np.zeros(layer.experts)
    first_load = load_probability(primary)
    for i in range(groups):
        mine, columns = np.sort(primary.token[primary.expert == i]), slice(i * size, (i + 1) * size)
        x = layer.x[mine]
        scale = noise_scale(x @ w["noise_weight"][columns].T, s["noise_floor"])
        order, gate, rest = _noisy(layer, x @ w["weight"][columns].T, scale, None if epsilon is None else epsilon[mine, columns], k)
        part = Decision(mine.repeat(k), order.ravel(), np.tile(np.arange(k), len(mine)), gate.ravel(), per_token=k, **rest)
        parts.append(part)
        scores[mine, columns] = rest["scores"] * primary.scores[mine, i, None]
        if epsilon is not None and len(mine):
            load[columns] = first_load[layer.real, i].sum() * load_probability(part).sum(0) / len(mine)
    token, expert, rank, gate = _product(layer, primary, parts, order_by_gate=True)
    return Decision(token, expert, rank, gate, scores=scores, per_token=k_groups * k, load=None if epsilon is None else load,
                    groups=primary)


def balanced_hierarchical(layer):
    """The batchwise mask of appendix F on both levels of appendix B."""
    s, w, groups = layer.settings, layer.weights, layer.settings["groups"]
    size, tokens = layer.experts // groups, np.nonzero(layer.real)[0]
    logits = layer.x @ w["group_weight"].T
    if layer.training:
        count = s["k_groups"] * len(tokens) // groups
        primary = _batchwise(layer, logits, tokens, count, w["group_threshold"])
    else:
        primary = _above(layer, logits, tokens, w["group_threshold"], s["eval_k_groups"])
    scores, parts = np.zeros((layer.tokens, layer.experts)), []
    for i in range(groups):
        mine, columns = np.sort(primary.token[primary.expert == i]), slice(i * size, (i + 1) * size)
        logits = layer.x @ w["weight"][columns].T
        scores[mine, columns] = softmax(logits[mine])
        threshold = w["threshold"][columns]
        if layer.training:
            parts.append(_batchwise(layer, logits, mine, s["k"] * len(mine) // size, threshold))
        else:
            parts.append(_above(layer, logits, mine, threshold, s["eval_k"]))
    token, expert, rank, gate = _product(layer, primary, parts, order_by_gate=False)
    return Decision(token, expert, rank, gate, scores=scores, threshold=w["threshold"], groups=primary)


ROUTERS = {f.__name__: f for f in (expert_choice, patch_choice, balanced_batchwise, hierarchical, balanced_hierarchical)}
