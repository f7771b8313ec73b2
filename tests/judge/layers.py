"""Random MoE layers: sizes, settings, inputs and weights, all from one seed. Letters: sparsight/moe/axes.md."""
import dataclasses
from fractions import Fraction
from typing import Optional

import numpy as np


@dataclasses.dataclass
class Layer:
    router: str
    experts: int
    images: int
    per_image: int
    x: np.ndarray  # [N,D], padding 0
    settings: dict  # of [router], every one
    chosen: dict  # those of them that differ from the defaults
    capacity: dict  # of [capacity]
    losses: dict  # weights that are given
    variants: dict  # of [losses]
    training: bool
    prefix: int = 0
    valid: Optional[np.ndarray] = None  # [N]
    token_id: Optional[np.ndarray] = None  # [N]
    target: Optional[np.ndarray] = None  # [B,E]
    priority: Optional[np.ndarray] = None  # [N]
    samples: dict = dataclasses.field(default_factory=dict)
    weights: dict = dataclasses.field(default_factory=dict)
    mlp: tuple = ()  # w1 [E,D,F], b1 [E,F], w2 [E,F,D], b2 [E,D]
    found: Optional[np.ndarray] = None  # the program's choices where the optimum is not unique (base)

    @property
    def tokens(self):
        return self.images * self.per_image

    @property
    def real(self):
        return np.ones(self.tokens, bool) if self.valid is None else self.valid

    def choices(self, name):
        """A setting that counts choices; eval_<name> replaces it in evaluation unless it is 0."""
        return self.settings[name] if self.training else self.settings["eval_" + name] or self.settings[name]

    def k(self):
        return self.choices("k")

    def exact(self, name):
        """A decimal setting as it is written, without binary rounding."""
        return Fraction(repr(self.choices(name)))

    def exact_capacity_factor(self):
        factor, in_evaluation = self.capacity["factor"], self.capacity["eval_factor"]
        return Fraction(repr(factor if self.training or in_evaluation < 0 else in_evaluation))

    def noise(self, name):
        """Samples of the noise, or None if it is off in this pass."""
        return self.samples[name] if self.training or self.settings.get("eval_noise") else None

    def has_noise(self):
        """Whether logits get noise in training."""
        return self.settings.get("noise", 0) > 0

    def used_samples(self):
        """Those that this pass uses: the program takes no others."""
        s, k = self.settings, self.k() if "k" in self.settings else 0
        on = self.training or s.get("eval_noise", False)
        uses = {"draw": True, "ties": s.get("ties") == "random", "jitter": on and s.get("jitter", 0) > 0,
                "second_expert": on and s.get("sample_second", False) and k > 1,
                "second": s.get("second" if self.training else "eval_second") == "random" and k > 1,
                "noise": on and s.get("noise", 0) > 0, "group_noise": on and s.get("noise", 0) > 0}
        return {name: value for name, value in self.samples.items() if uses[name]}

    def groups(self):
        """The tokens of each group of [capacity] group, without padding."""
        size = self.capacity["group"] * (self.per_image if self.capacity["group_unit"] == "images" else 1) or self.tokens
        everything = np.arange(self.tokens)
        return [everything[first:first + size][self.real[first:first + size]] for first in range(0, self.tokens, size)]


def _settings(rng, router, experts, per_image, prefix):
    """Random settings of a router, all valid for E experts and S tokens per image."""
    one = lambda *values: values[rng.integers(len(values))]
    k = lambda low=1, high=experts: int(rng.integers(low, high + 1))
    eval_k = lambda: one(0, 0, k())
    real = lambda low, high: round(float(rng.uniform(low, high)), 3)
    groups = one(*[g for g in range(1, experts + 1) if experts % g == 0])
    flag = lambda: bool(rng.integers(2))
    noise = lambda: {"noise": one(0.0, 1.0, real(0, 5)), "eval_noise": flag()}
    top_k = lambda: {"k": k(), "eval_k": eval_k()}
    ties = lambda: {"ties": one("lowest", "random")}
    kept = one(*[m for m in range(1, groups + 1)])
    patches = per_image - prefix
    two = {"groups": groups, "k_groups": k(1, groups), "eval_k_groups": one(0, k(1, groups)), "k": k(1, experts // groups),
           "eval_k": one(0, k(1, experts // groups))}
    return {
        "softmax_topk": lambda: {**top_k(), **ties(), **noise(), "renormalize": flag()},
        "noisy_topk": lambda: {**top_k(), **ties(), "noise_floor": one(0.0, 0.01, real(0, 1)), "noise": flag(),
                               "eval_noise": flag()},
        "gshard_top2": lambda: {"eval_k": one(0, k()), "second": one("all", "none", "threshold", "random"),
                                "eval_second": one("all", "none", "threshold", "random"), "threshold": real(0.05, 1),
                                "sample_second": flag(), "eval_noise": flag()},
        "switch_top1": lambda: {"eval_k": eval_k(), "jitter": one(0.0, 0.01, real(0, 1)), "eval_noise": flag()},
        "cosine": lambda: {**top_k(), **ties(), **noise(), "width": k(1, 9), "learn_temperature": flag(),
                           "renormalize": one("auto", "on", "off")},
        "sigmoid_bias": lambda: {"k": kept * k(1, experts // groups), "eval_k": one(0, kept * k(1, experts // groups)),
                                 "scale": one(1.0, 2.5, real(0.1, 5)), "groups": groups, "kept_groups": kept},
        "dense_softmax": lambda: {"eval_k": eval_k()},
        "hash": lambda: {**top_k(), "seed": int(rng.integers(1 << 62))},
        "random": top_k,
        "round_robin": top_k,
        "expert_choice": lambda: {"experts_per_token": min(real(0.1, 4), float(experts)), "eval_experts_per_token": one(0.0, 1.0),
                                  "pool": one("batch", "image")},
        "patch_choice": lambda: {"patches": k(1, patches), "eval_patches": one(0, k(1, patches)),
                                 "gate": one("topl_softmax", "softmax_topl", "ones")},
        "balanced_batchwise": top_k,
        "hierarchical": lambda: {**two, "noise_floor": one(0.0, 0.01), "noise": flag(), "eval_noise": flag()},
        "balanced_hierarchical": lambda: two,
        "per_image": lambda: {**top_k(), **ties(), **noise(), "norm": one("none", "layer_norm", "affine"), "renormalize": flag(),
                              "input": one(*["auto", "mean_all", "mean_patches"] + ["class_token"] * bool(prefix)),
                              "teacher_forced": one(False, False, True)},
        "base": lambda: {"eval_k": eval_k()},
        "sinkhorn": lambda: {**top_k(), "temperature": one(1.0, real(0.3, 3)), "iterations": one(0, 1, 20, 50),
                             "gate": one("softmax", "sigmoid")},
        "soft_moe": lambda: {"slots": k(1, 3), "normalize": flag()},
        "relu": lambda: {"mean_k": real(0.5, experts), "coefficient": one(0.0, 1e-3), "balance": flag()},
        "top_p": lambda: {"p": real(0.05, 0.95), "max_k": one(0, k())},
    }[router]()


def _capacity(rng):
    one = lambda *values: values[rng.integers(len(values))]
    return {"factor": one(0.0, 0.5, 1.0, 1.05, 1.1, 1.25, 2.0), "eval_factor": one(-1.0, -1.0, 0.0, 0.7, 1.5),
            "rounding": one("ceil", "floor", "round", "floor_per_choice"), "multiple": one(1, 1, 2, 4), "minimum": one(1, 1, 4),
            "count_k": bool(rng.integers(2)), "priority": one("none", "max_gate", "sum_gates", "given"),
            "group": one(0, 1, 2, 3), "group_unit": one("images", "tokens"), "renormalize": bool(rng.integers(2))}


def _variants(rng):
    one = lambda *values: values[rng.integers(len(values))]
    return {"unbiased_variance": bool(rng.integers(2)), "vmoe_load_of": one("logits", "scores"),
            "switch_counts": one("auto", "first", "mean", "sum"), "switch_form": one("switch", "gshard")}


def _padding(rng, layer):
    """Some layers have padding. The balanced routers need a number of tokens that divides evenly."""
    divides = layer.router.startswith("balanced")
    if not divides and rng.random() < 0.6:
        return None
    count = layer.tokens if rng.random() < 0.5 else int(rng.integers(layer.tokens + 1))
    if layer.router == "sinkhorn":
        count = max(count, 2)  # a single token is balanced between all experts, and rounding would choose
    if divides:  # each level's shares are then whole numbers
        count -= count % layer.experts
        if layer.router == "balanced_hierarchical":
            groups = layer.settings["groups"]
            count -= count % (layer.experts * groups)
    valid = np.zeros(layer.tokens, bool)
    valid[rng.permutation(layer.tokens)[:count]] = True
    return valid


def random_layer(router, seed, defaults, loss_names):
    """defaults: all settings of the router. Whatever is random here comes from `seed`."""
    rng = np.random.default_rng([seed, *router.encode()])
    experts = int(rng.integers(2 if router == "gshard_top2" else 1, 9))
    images, per_image, width = int(rng.integers(1, 5)), int(rng.integers(2, 10)), int(rng.integers(2, 9))
    if router == "balanced_hierarchical":
        per_image *= 4
    prefix = int(rng.integers(2))
    chosen = _settings(rng, router, experts, per_image, prefix)
    layer = Layer(router, experts, images, per_image, rng.standard_normal((images * per_image, width)), {**defaults, **chosen},
                  chosen, _capacity(rng), {}, _variants(rng), bool(rng.integers(2)), prefix)
    every = "k" in layer.settings and (layer.k() or experts) * layer.settings.get("k_groups", 1) >= experts
    if every and layer.capacity["priority"] == "sum_gates":
        layer.capacity["priority"] = "max_gate"  # all sums are 1, and rounding would choose
    if router == "soft_moe":
        layer.capacity = {**layer.capacity, "factor": 0.0, "eval_factor": -1.0}
    layer.losses = {name: round(float(rng.uniform(0.1, 2)), 3) for name in loss_names if rng.random() < 0.7}
    if not layer.has_noise():  # the load losses are refused
        layer.losses = {name: weight for name, weight in layer.losses.items() if name not in ("load", "vmoe_load")}
    layer.valid = _padding(rng, layer)
    if layer.valid is not None:
        layer.x[~layer.valid] = 0
    if rng.random() < 0.5:
        layer.token_id = rng.integers(-50, 50, layer.tokens)
    if rng.random() < 0.5 or layer.settings.get("teacher_forced"):
        layer.target = rng.dirichlet(np.full(experts, 0.5), images)
        layer.target /= layer.target.sum(1, keepdims=True)
    if layer.capacity["priority"] == "given":
        layer.priority = rng.standard_normal(layer.tokens)
    return layer, rng


def fill(layer, rng, shapes, sample_names):
    """Samples, and weights of the given shapes: {name: (shape, is it an integer)}. Every third layer has ties: equal tokens, equal
    experts, and whole numbers, whose logits are exact."""
    n, e, s = layer.tokens, layer.experts, layer.settings
    decisions = layer.images if layer.router == "per_image" else n
    every = {"noise": (decisions, e), "ties": (decisions, e), "group_noise": (n, s.get("groups", 1)),
             "second": (n, max(1, (layer.k() if "k" in s else 2) - 1)), "second_expert": (n, e), "jitter": layer.x.shape,
             "draw": (n, e)}
    uniform = ("second", "second_expert", "jitter", "draw", "ties")
    layer.samples = {name: rng.uniform(1e-3, 1, every[name]) if name in uniform else rng.standard_normal(every[name])
                     for name in sample_names}
    exact = layer.router not in ("cosine", "per_image", "soft_moe") and not (layer.router == "sinkhorn" and layer.training)
    tied = rng.integers(3) == 0 and exact and not (sample_names and (layer.training or s.get("eval_noise")))
    if tied:
        layer.x = rng.integers(-3, 4, layer.x.shape)[rng.integers(max(1, n // 2), size=n)] * layer.real[:, None] * 1.0
    for name, (shape, integer) in shapes.items():
        value = rng.integers(-3, 4, shape) / 4 if tied else rng.standard_normal(shape)
        if tied and len(shape) == 2:
            value = value[rng.integers(max(1, shape[0] // 2), size=shape[0])]
        if "threshold" in name:
            value = np.abs(value) / max(1, shape[0])
        if name in ("scale", "l1_coefficient"):
            value = np.abs(value)
        layer.weights[name] = np.zeros(shape, np.int64) if integer else value
    width, hidden = layer.x.shape[1], int(rng.integers(1, 6))
    layer.mlp = tuple(rng.standard_normal(shape) for shape in
                      ((e, width, hidden), (e, hidden), (e, hidden, width), (e, width)))
