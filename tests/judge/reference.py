"""The outputs that a Decision (routers.py) leads to, under the names of docs/moe.md, and their comparison."""
import capacity
import losses
import numpy as np
from routers import Mixture

TOLERANCE = 1e-9  # of float64 results: absolute below 1, relative above


def _mlp(layer, x, e):
    """gelu(x w1 + b1) w2 + b2, gelu with the error function."""
    w1, b1, w2, b2 = (w[e] for w in layer.mlp)
    h = x @ w1 + b1
    return h * losses.normal_cdf(h) @ w2 + b2 if len(x) else np.zeros_like(x)


def _mixed(layer, mix):
    b, s, p = mix.logits.shape
    slots = np.einsum("bsp,bsd->bpd", mix.dispatch, layer.x.reshape(b, s, -1))
    out = np.stack([_mlp(layer, slots[:, i], i // (p // layer.experts)) for i in range(p)], 1)
    return {"logits": mix.logits, "dispatch": mix.dispatch, "combine": mix.combine,
            "output": np.einsum("bsp,bpd->bsd", mix.combine, out).reshape(layer.x.shape)}


def _counts(layer, d, kept, gate):
    e = layer.experts
    count = np.bincount(d.expert, minlength=e)
    importance = np.bincount(d.expert, gate, e)
    load = count
    if d.load is not None:
        load = d.load
    elif d.logits is not None and d.scale is not None and d.per_token and not d.varying:
        load = losses.load_probability(d)[layer.real].sum(0)
    first = d.rank == 0
    cv = lambda v: v.std() / v.mean() if v.mean() else 0.0
    over = lambda v: v.max() / v.mean() if v.mean() else 0.0
    printed = {"CV(importance)": cv(importance), "CV(load)": cv(load), "max/mean load": over(load), "max/mean count": over(count),
               "experts per token": len(d.token) / max(1, layer.real.sum()),
               "mean top gate": gate[first].mean() if first.any() else 0.0}
    sums = {"chosen_count": count, "kept_count": np.bincount(d.expert[kept], minlength=e), "importance": importance, "load": load}
    return sums, printed


def _level(layer, d, prefix=""):
    real = layer.real[:, None]
    rows = {"clean_logits": d.logits, "noisy_logits": d.noisy, "scores": d.scores}
    out = {prefix + name: np.where(real, value, 0) for name, value in rows.items() if value is not None}
    if d.threshold is not None:
        out[prefix + "threshold"] = d.threshold
    if d.scale is not None:
        out[prefix + "noise_scale"] = d.scale if np.ndim(d.scale) == 0 else np.where(real, d.scale, np.nan)
    return out


def expected(layer, d):
    """{name: array}, and "printed": {name: number}. NaN: not compared."""
    if isinstance(d, Mixture):
        real = layer.real.reshape(layer.images, layer.per_image, 1)
        d.logits = np.where(real, d.logits, np.nan)
        return {**_mixed(layer, d), "loss_weights": {}}
    kept, position, limits, gate = capacity.limit(layer, d)
    counts, printed = _counts(layer, d, kept, gate)
    out = {**_level(layer, d), **counts, "printed": printed, "token": d.token, "expert": d.expert, "rank": d.rank, "gate": gate,
           "kept": kept}
    if position is not None:
        out["position"], out["capacity"] = position, np.array(limits)
    if d.groups is not None:
        g = d.groups
        out.update(_level(layer, g, "groups."))
        out["groups.chosen"] = np.zeros(g.scores.shape, bool)
        out["groups.chosen"][g.token, g.expert] = True
        out.update({"groups.token": g.token, "groups.expert": g.expert, "groups.rank": g.rank, "groups.gate": g.gate,
                    "groups.chosen_count": np.bincount(g.expert, minlength=g.scores.shape[1])})
    output, dense = np.zeros_like(layer.x), np.zeros((layer.tokens, layer.experts))
    dense[d.token, d.expert] = gate * kept
    for e in range(layer.experts):
        output += dense[:, e, None] * _mlp(layer, layer.x, e)
    out.update({"output": output, "gates": dense, **{f"metric.{name}": value for name, value in d.metrics.items()}})
    weights = {**losses.defaults(layer), **layer.losses}
    total = 0.0
    for name, weight in weights.items():
        value = losses.LOSSES[name](layer, d, layer.variants)
        out[f"loss.{name}"], out[f"loss_weight.{name}"] = value, weight
        total += weight * (value or 0)
    for name, (value, weight) in d.own_losses.items():
        out[f"loss.{name}"], out[f"loss_weight.{name}"] = value, weight
        total += weight * value
    return {**out, "loss": total}


def _assignments(values, prefix):
    """In one order: by token, expert."""
    order = np.lexsort((values[prefix + "expert"], values[prefix + "token"]))
    names = [prefix + name for name in ("token", "expert", "rank", "gate", "kept", "position")]
    return {name: values[name][order] for name in names if name in values}


def compare(layer, found, printed, wanted):
    """Returns (numbers compared, largest deviation). Raises AssertionError for a difference, or an output without a counterpart."""
    for prefix in ("", "groups."):
        if prefix + "token" in found:
            assert len(found[prefix + "token"]) == len(wanted[prefix + "token"]), \
                f"{len(found[prefix + 'token'])} {prefix}assignments, expected {len(wanted[prefix + 'token'])}"
            found = {**found, **_assignments(found, prefix)}
            wanted = {**wanted, **_assignments(wanted, prefix)}
    compared, largest = 0, 0.0
    for name, value in found.items():
        assert name in wanted, f"nothing to compare {name} with"
        want = np.asarray(0.0 if wanted[name] is None else wanted[name], float)
        assert value.shape == want.shape, f"{name} has the shape {value.shape}, expected {want.shape}"
        given = ~np.isnan(want)
        off = np.abs(value[given] - want[given]) / np.maximum(1, np.abs(want[given]))
        wrong = np.nonzero(~(off <= TOLERANCE))[0]
        assert len(wrong) == 0, f"{len(wrong)} of {len(off)} {name}: {value[given][wrong[:5]]}, expected {want[given][wrong[:5]]}"
        compared, largest = compared + int(given.sum()), max(largest, off.max(initial=0))
    absent = [name for name, value in wanted.items() if name.startswith("loss.") and value is not None and name not in found
              and layer.training]
    assert not absent, f"not computed: {absent}"
    for name, text in printed.items():  # rounded to the last digit
        unit = 10.0 ** -len(text.partition(".")[2])
        assert abs(float(text) - wanted["printed"][name]) < 0.501 * unit, f"printed {name} {text}, expected {wanted['printed'][name]}"
    return compared + len(printed), largest
