"""Makes auto_attack.safetensors, the expected traces of Sparsight's attacks, with the reference implementation of
AutoAttack (https://github.com/fra31/auto-attack, Croce and Hein 2020).

A small model whose weights follow from a formula (tests/golden/auto_attack_test.cpp computes them too), a few images, and
for each attack what the reference did from a given start: losses and step sizes of every iteration, and the final points.
All in float64. Run it with a checkout of the reference:

    pip install torch safetensors && python tests/golden/make_auto_attack.py <folder of the checkout>

The committed file came from commit a392200 and torch 2.13.0.
"""

import os
import sys

import torch
from safetensors.torch import save_file

torch.set_default_dtype(torch.float64)
sys.path.insert(0, sys.argv[1])
from autoattack.autopgd_base import APGDAttack, APGDAttack_targeted  # noqa: E402
from autoattack.fab_pt import FABAttack_PT  # noqa: E402
from autoattack.square import SquareAttack  # noqa: E402

IMAGES, SHAPE, HIDDEN, CLASSES = 6, (3, 6, 5), 20, 10
EPSILON = {"Linf": 0.02, "L2": 0.15}
APGD_RUNS = [("ce", "ce", 100, None), ("ce_short", "ce", 10, None), ("dlr", "dlr", 20, None),
             ("targeted", "dlr-targeted", 50, 2), ("targeted_third", "dlr-targeted", 30, 3)]
INPUTS = SHAPE[0] * SHAPE[1] * SHAPE[2]


def wave(count, square, phase):
    """sin(square * n^2 + n + phase): numbers without visible structure, the same in any language."""
    n = torch.arange(count, dtype=torch.float64)
    return torch.sin(square * n * n + n + phase)


FIRST = 0.6 * wave(HIDDEN * INPUTS, 0.11, 0.1).view(HIDDEN, INPUTS)
SECOND = wave(CLASSES * HIDDEN, 0.13, 0.2).view(CLASSES, HIDDEN)
BIAS = wave(HIDDEN, 0.17, 0.3)


def logits(x):
    return torch.sin((x.flatten(1) - 0.5) @ FIRST.T + BIAS) @ SECOND.T


class Recorder:
    """The model, which keeps what the attack evaluated, and the attack's local variable step_size at that time."""

    def __init__(self):
        self.points, self.outputs, self.steps = [], [], []

    def __call__(self, x):
        out = logits(x)
        self.points.append(x.detach().clone())
        self.outputs.append(out.detach().clone())
        step = sys._getframe(1).f_locals.get("step_size")
        self.steps.append(None if step is None else step.flatten().clone())
        return out


def growth_decides_alike(losses, attack):
    """The reference compares the first iteration with 0 instead of the start's loss; that must not matter here."""
    first = max(int(0.22 * attack.n_iter), 1)
    shared = (losses[2:first + 1] > losses[1:first]).sum(0)
    ours, theirs = shared + (losses[1] > losses[0]), shared + (losses[1] > 0)
    return bool(((ours <= 0.75 * first) == (theirs <= 0.75 * first)).all())


def apgd(norm, loss, iterations, x, y, start, rank=None):
    recorder = Recorder()
    common = dict(n_iter=iterations, norm=norm, eps=EPSILON[norm])
    if rank is None:
        attack = APGDAttack(recorder, loss=loss, **common)
    else:
        attack = APGDAttack_targeted(recorder, **common)
        attack.y_target = logits(x).sort(dim=1)[1][:, -rank]
    attack.init_hyperparam(x)
    best, _, best_loss, adversarial = attack.attack_single_run(x, y, x_init=start)
    criterion = {"ce": lambda z: torch.nn.functional.cross_entropy(z, y, reduction="none"),
                 "dlr": lambda z: attack.dlr_loss(z, y),
                 "dlr-targeted": lambda z: attack.dlr_loss_targeted(z, y)}[loss]
    losses = torch.stack([criterion(z) for z in recorder.outputs])
    if not growth_decides_alike(losses, attack):
        return apgd(norm, loss, iterations + 1, x, y, start, rank)
    result = {"losses": losses, "steps": torch.stack(recorder.steps[1:]), "best": best, "best_loss": best_loss,
              "last_fooled": adversarial,
              "fooled": torch.stack([z.argmax(1) != y for z in recorder.outputs]).any(0).to(torch.int64)}
    # Where the label has the third largest logit, the dlr loss is 1 and its gradient rounding noise.
    lost = ((losses - 1).abs() < 1e-6).any(0) if loss == "dlr" else torch.zeros(len(x), dtype=torch.bool)
    result["compared"] = (~lost).nonzero().squeeze(1)
    if rank is not None:
        result["target"] = attack.y_target
    return result


def fab(norm, iterations, x, y, rank=None):
    recorder = Recorder()
    attack = FABAttack_PT(recorder, norm=norm, n_iter=iterations, eps=EPSILON[norm], targeted=rank is not None)
    attack.target_class = rank
    closest = attack.attack_single_run(x, y, use_rand_start=False, is_targeted=rank is not None)
    passes_before = 1 if rank is None else 2
    # Each step: one pass with gradients, one of the new point.
    after_step = torch.stack(recorder.points[passes_before + 1::2])
    assert len(after_step) == iterations
    delta = (after_step - x).flatten(2)
    distance = delta.abs().amax(2) if norm == "Linf" else (delta ** 2).sum(2).sqrt()
    result = {"distances": distance, "closest": closest}
    if rank is not None:
        result["target"] = logits(x).sort(dim=1)[1][:, -rank]
    return result


class Lehmer:
    """A multiplicative generator that both sides can run: s <- 48271 s mod (2^31 - 1), numbers in (0, 1)."""

    def __init__(self):
        self.state = 12345

    def uniform(self):
        self.state = self.state * 48271 % 2147483647
        return self.state / 2147483647


def square(norm, queries, x, y):
    """With random numbers of our own, one after the other in row-major order."""
    recorder, lehmer, usual = Recorder(), Lehmer(), torch.rand
    torch.rand = lambda shape: torch.tensor([lehmer.uniform() for _ in range(torch.Size(shape).numel())]).view(shape)
    attack = SquareAttack(recorder, norm=norm, n_queries=queries, eps=EPSILON[norm], p_init=0.8, resc_schedule=False)
    attack.init_hyperparam(x)
    count, final = attack.attack_single_run(x, y)
    torch.rand = usual
    own = logits(final).gather(1, y[:, None]).squeeze(1)
    others = logits(final).scatter(1, y[:, None], -float("inf")).amax(1)
    return {"final": final, "queries": count.to(torch.int64), "margin": own - others}


if __name__ == "__main__":
    torch.Tensor.float = torch.Tensor.double  # the reference casts to float32
    x = (0.5 + 0.49 * wave(IMAGES * INPUTS, 0.19, 0.4)).view(IMAGES, *SHAPE)
    y = logits(x).argmax(1)
    start = {norm: torch.zeros_like(x) for norm in EPSILON}
    noise = wave(IMAGES * INPUTS, 0.23, 0.5).view_as(x)
    start["Linf"] = (x + EPSILON["Linf"] * noise).clamp(0, 1)
    start["L2"] = (x + EPSILON["L2"] * noise / noise.flatten(1).norm(dim=1).view(-1, 1, 1, 1)).clamp(0, 1)
    tensors = {"images": x, "labels": y, "logits": logits(x)}
    runs = {}
    for norm in EPSILON:
        tensors[f"{norm}/start"] = start[norm]
        for name, loss, iterations, rank in APGD_RUNS:
            runs[f"{norm}/apgd_{name}"] = apgd(norm, loss, iterations, x, y, start[norm], rank)
        runs[f"{norm}/fab"] = fab(norm, 20, x, y)
        runs[f"{norm}/fab_targeted"] = fab(norm, 40, x, y, 2)
        runs[f"{norm}/fab_targeted_fifth"] = fab(norm, 20, x, y, 5)
        runs[f"{norm}/square"] = square(norm, 300, x, y)
    for run, values in runs.items():
        tensors |= {f"{run}/{name}": value for name, value in values.items()}
        print(run, {name: value.tolist() for name, value in values.items() if value.dim() == 1})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "auto_attack.safetensors")
    metadata = {"made by": f"make_auto_attack.py with auto-attack a392200, torch {torch.__version__}"}
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    print(path, os.path.getsize(path), "bytes")
