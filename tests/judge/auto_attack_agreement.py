"""Compares `sparsight attack` with the reference implementation of AutoAttack, image by image, on a trained model.

The model runs twice: in Sparsight, and written out in plain PyTorch (trained_models.py) under the authors' code. APGD-CE and
APGD-T start at the images themselves, so both programs have the same starts; FAB-T and Square have random numbers of their
own and are compared by McNemar's test. Optional: without the reference, the data or the run it says so and ends with 0.

    python tests/judge/auto_attack_agreement.py RUN --reference FOLDER --data FOLDER --images 200 --eps 1/255

RUN: a run folder on CIFAR-100. --reference: a checkout of https://github.com/fra31/auto-attack (results in docs/attacks.md:
commit a392200). Never installed with the library.
"""

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
from fractions import Fraction

import torch
from trained_models import load_model

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "release", "cli", "sparsight")
NAMES = {"apgd-ce": "apgd", "apgd-t": "apgd_t", "fab-t": "fab_t", "square": "square"}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--reference", default=os.environ.get("AUTO_ATTACK", ""), help="checkout of auto-attack")
    parser.add_argument("--data", default=os.path.join(os.environ.get("SPARSIGHT_DATA", ""), "cifar100"))
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("--attacks", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--images", type=int, default=200, help="the first ones of the test set")
    parser.add_argument("--eps", default="1/255")
    parser.add_argument("--steps", type=int, default=100, help="steps of APGD and FAB")
    parser.add_argument("--targets", type=int, default=9)
    parser.add_argument("--queries", type=int, default=5000, help="of Square")
    parser.add_argument("--precision", choices=("fp32", "fp64"), default="fp32")
    return parser.parse_args(arguments)


def cifar100(folder, count, dtype):
    """Records of one coarse and one fine label and the planes of red, green and blue."""
    records = torch.frombuffer(bytearray(open(os.path.join(folder, "test.bin"), "rb").read(count * 3074)), dtype=torch.uint8)
    records = records.view(-1, 3074)
    return records[:, 2:].view(-1, 3, 32, 32).to(dtype) / 255, records[:, 1].long()


def ours(options, name):
    """[images] bool: classified correctly as they are, and still after the attack."""
    settings = {"apgd-ce": [f"steps={options.steps}", "start=none"],
                "apgd-t": [f"steps={options.steps}", f"targets={options.targets}", "start=none"],
                "fab-t": [f"steps={options.steps}", f"targets={options.targets}"],
                "square": [f"queries={options.queries}"]}[name]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "attack")
        command = [options.program, "attack", options.run, "--attack", NAMES[name], "--eps", options.eps, "--images",
                   str(options.images), "--data", options.data, "--examples", "0", "--out", out]
        command += [part for setting in settings for part in ("--set", "attack." + setting)]
        if options.precision == "fp64":
            command += ["--precision", "fp64"]
        finished = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if finished.returncode != 0:
            sys.exit(f"{' '.join(command)}: {finished.stderr[-500:]}")
        rows = list(csv.DictReader(open(os.path.join(out, "images.csv"))))
    clean = torch.tensor([row["clean_prediction"] == row["label"] for row in rows])
    return clean, clean & torch.tensor([row["fooled_by"] == "" for row in rows])


def apgd(options, model, x, y, robust, targeted):
    from autoattack.autopgd_base import APGDAttack, APGDAttack_targeted
    common = dict(n_iter=options.steps, norm="Linf", eps=float(Fraction(options.eps)), device="cpu")
    attack = APGDAttack_targeted(model, **common) if targeted else APGDAttack(model, loss="ce", **common)
    attack.init_hyperparam(x)
    for rank in range(2, options.targets + 2) if targeted else [0]:
        index = robust.nonzero().squeeze(1)
        if len(index) == 0:
            break
        if targeted:
            with torch.no_grad():
                attack.y_target = model(x[index]).sort(dim=1)[1][:, -rank]
        still = attack.attack_single_run(x[index], y[index], x_init=x[index].clone())[1]
        robust[index[~still.bool()]] = False
    return robust


def reference(options, name, model, x, y):
    """As ours(), by the authors' code, in pieces of 100 images."""
    from autoattack.fab_pt import FABAttack_PT
    from autoattack.square import SquareAttack
    epsilon = float(Fraction(options.eps))
    clean_parts, robust_parts = [], []
    for x, y in zip(x.split(100), y.split(100)):
        with torch.no_grad():
            clean = model(x).argmax(1) == y
        clean_parts.append(clean)
        if name.startswith("apgd"):
            robust_parts.append(apgd(options, model, x, y, clean.clone(), name == "apgd-t"))
            continue
        index = clean.nonzero().squeeze(1)
        if name == "fab-t":
            attack = FABAttack_PT(model, norm="Linf", n_iter=options.steps, eps=epsilon, targeted=True, device="cpu",
                                  n_target_classes=options.targets)
        else:
            attack = SquareAttack(model, norm="Linf", n_queries=options.queries, eps=epsilon, p_init=0.8, n_restarts=1,
                                  resc_schedule=False, device="cpu")
        moved = attack.perturb(x[index], y[index])
        inside = (moved - x[index]).abs().flatten(1).amax(1) <= epsilon * (1 + 1e-6) + 1e-7
        with torch.no_grad():
            fooled = (model(moved).argmax(1) != y[index]) & inside
        robust_parts.append(clean.clone().index_put((index[fooled],), torch.tensor(False)))
    return torch.cat(clean_parts), torch.cat(robust_parts)


def mcnemar(one, other):
    """The exact two-sided p of `one` and `other` images that only one of the two fooled."""
    n = one + other
    tail = sum(math.comb(n, k) for k in range(min(one, other) + 1)) / 2 ** n
    return min(1.0, 2 * tail)


def main(arguments):
    options = parse(arguments)
    weights = next((path for name in ("best", "last")
                    if os.path.exists(path := os.path.join(options.run, "checkpoints", name + ".safetensors"))), None)
    for what, there in (("reference (--reference FOLDER)", os.path.isdir(os.path.join(options.reference, "autoattack"))),
                        ("data set (--data FOLDER)", os.path.exists(os.path.join(options.data, "test.bin"))),
                        ("trained run", weights is not None), ("program", os.path.exists(options.program))):
        if not there:
            print(f"skipped: no {what}")
            return
    sys.path.insert(0, options.reference)
    double = options.precision == "fp64"
    if double:
        torch.set_default_dtype(torch.float64)
        torch.Tensor.float = torch.Tensor.double  # the reference casts to float32
    dtype = torch.float64 if double else torch.float32
    model = load_model(weights, dtype)
    x, y = cifar100(options.data, options.images, dtype)
    for name in options.attacks:
        clean, mine = ours(options, name)
        their_clean, theirs = reference(options, name, model, x, y)
        only_ours, only_theirs = int((theirs & ~mine).sum()), int((mine & ~theirs).sum())
        print(json.dumps({"attack": name, "precision": options.precision, "eps": options.eps, "images": len(y),
                          "clean": [int(clean.sum()), int(their_clean.sum())],
                          "clean_differ": int((clean != their_clean).sum()),
                          "robust": [int(mine.sum()), int(theirs.sum())], "only_ours_fooled": only_ours,
                          "only_theirs_fooled": only_theirs, "p": mcnemar(only_ours, only_theirs)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
