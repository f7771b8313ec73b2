"""Expert capacity in NumPy: which assignments an expert's buffer has a slot for. C rows per expert and group of S tokens.

GShard (Lepikhin et al. 2020), section 2.2 and algorithm 1; Switch (Fedus et al. 2021), equation 3; V-MoE (Riquelme et al. 2021),
section 2.4 and appendix C; GMoE's library. Letters: sparsight/moe/axes.md.
"""
import math
from fractions import Fraction

import numpy as np


def rows(options, factor, tokens, experts, k):
    """C for a group. factor and k are exact (Fraction)."""
    k = k if options["count_k"] else 1
    if options["rounding"] == "floor_per_choice":  # GMoE: k floor(f ceil(S / E))
        count = math.floor(k * math.floor(factor * math.ceil(Fraction(tokens, experts))))
    else:
        share = factor * k * tokens / experts
        half_up = lambda x: math.floor(x + Fraction(1, 2))
        count = {"ceil": math.ceil, "floor": math.floor, "round": half_up}[options["rounding"]](share)
    count = max(min(count, tokens), options["minimum"])
    return -(-count // options["multiple"]) * options["multiple"]


def _priority(options, layer, d):
    """[N]: tokens of a larger value get slots first (V-MoE's batch priority, section 4.1)."""
    if options["priority"] == "none":
        return np.zeros(layer.tokens)
    if options["priority"] == "given":
        return layer.priority
    # Scores are those before renormalisation; routers without scores have equal gates.
    value = d.gate if d.scores is None else d.scores[d.token, d.expert]
    out = np.full(layer.tokens, -np.inf)
    if options["priority"] == "max_gate":
        np.maximum.at(out, d.token, value)
    else:
        out = np.bincount(d.token, value, layer.tokens)
    return out


def limit(layer, d):
    """Returns kept [A], position [A] (None: no limit), capacity [G] (None), gate [A]."""
    options, factor = layer.capacity, layer.exact_capacity_factor()
    kept = np.ones(len(d.token), bool)
    if factor == 0 or not d.per_token:
        return kept, None, None, d.gate
    position, priority, capacity = np.zeros(len(d.token), np.int64), _priority(options, layer, d), []
    for tokens in layer.groups():
        mine = np.nonzero(np.isin(d.token, tokens))[0]
        k = Fraction(len(mine), max(1, len(tokens))) if d.varying else Fraction(d.per_token)
        count = rows(options, factor, len(tokens), layer.experts, k) if len(tokens) else None
        capacity.append(np.nan if count is None else count)
        filled = np.zeros(layer.experts, np.int64)
        # All first choices, then all second ones; within a rank by priority, then in token order.
        for a in mine[np.lexsort((d.token[mine], -priority[d.token[mine]], d.rank[mine]))]:
            position[a] = filled[d.expert[a]]
            filled[d.expert[a]] += 1
            kept[a] = position[a] < count
    gate = d.gate
    if options["renormalize"]:
        total = np.bincount(d.token, gate * kept, layer.tokens)[d.token]
        gate = np.where(kept, gate / np.where(total == 0, 1, total), 0)
    return kept, position, capacity, gate
