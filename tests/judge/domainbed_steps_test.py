"""Steps of our algorithms of domain generalisation beside those of DomainBed's own classes: from the same weights, on
the same images, with the same hyper-parameters and random numbers, losses and weights must be the same. Every algorithm
is compared unless DomainBed has none of the name, or docs/dg_algorithms.md says where the two differ. A wrong
hyper-parameter on one side must be found. SPARSIGHT_DOMAINBED names a checkout of
github.com/facebookresearch/DomainBed; without it the test is skipped. SPARSIGHT_JUDGE_ALGORITHMS=irm,vrex restricts the
run to some."""
import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import torch

try:
    import safetensors
except ModuleNotFoundError:
    print("needs safetensors (pip install safetensors)")
    sys.exit(77)

import domainbed_peer  # noqa: E402
from domainbed_cases import CASES, SHARED  # noqa: E402

DOMAINBED = os.environ.get("SPARSIGHT_DOMAINBED", "")
PROGRAM = pathlib.Path(os.environ.get("BUILD", "build/release")) / "tests/sparsight_domainbed_steps"
DOCUMENTATION = pathlib.Path(__file__).resolve().parents[2] / "docs/dg_algorithms.md"
STEPS = 6
# Losses and logits: relative to the larger of the value and 1. Weights, for each tensor and step: the sum of absolute
# differences over that of the step. Adam divides gradients by their size, so that a single one near 0 may go anywhere;
# hence sums. After each step DomainBed goes on from our weights, so that the differences do not grow with the number of
# steps; optimisers and all other state are each one's own.
LOSS_TOLERANCE, LOGIT_TOLERANCE, WEIGHT_TOLERANCE = 1e-5, 1e-4, 1e-3
FOUND = 10  # a wrong hyper-parameter differs by more than so many tolerances
Deviation = collections.namedtuple("Deviation", "tolerances where")


class Trace:
    """What the program wrote of its steps."""

    def __init__(self, path):
        with safetensors.safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            metadata = file.metadata()
        self.hparams, self.losses = json.loads(metadata["hparams"]), json.loads(metadata["losses"])
        self.steps = len(self.losses)
        under = lambda prefix: {n[len(prefix):]: t for n, t in tensors.items() if n.startswith(prefix)}  # noqa: E731
        self.start, self.probe = under("start/"), under("probe/")
        self.after = [under(f"after/{step}/") for step in range(self.steps)]
        self.batches, self.draws = [], []
        for step in range(self.steps):
            batch, drawn = under(f"batch/{step}/"), under(f"draws/{step}/")
            self.domains = len(batch) // 2
            self.batches.append([(batch[f"{e}/images"], batch[f"{e}/labels"]) for e in range(self.domains)])
            in_order = sorted(drawn, key=lambda name: int(name.split("/")[0]))
            self.draws.append([(name.split("/")[1], drawn[name]) for name in in_order])
        self.classes = self.probe["start"].shape[1]

    def before(self, step, name):
        return self.after[step - 1].get(name, self.start[name]) if step > 0 else self.start[name]


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise AssertionError(f"the program failed: {done.stderr.strip()}")
    return done.stdout


def record(name, settings, folder):
    path = pathlib.Path(folder) / f"{name}.safetensors"
    run(name, json.dumps(settings), STEPS, path)
    return Trace(path)


def of_value(where, ours, theirs, rounding):
    return Deviation(abs(ours - theirs) / max(1.0, abs(theirs)) / (rounding * LOSS_TOLERANCE), where)


def of_tensor(where, ours, theirs, before):
    difference, way = (ours - theirs).abs().sum(), (theirs - before).abs().sum()
    if difference == 0:
        return Deviation(0.0, where)
    return Deviation(float(difference / way) / WEIGHT_TOLERANCE if way > 0 else math.inf, where)


def loss_deviations(case, step, ours, theirs, hparams):
    for name, of in case.losses.items():
        if callable(of):
            wanted = of(theirs, hparams)
        else:
            wanted = theirs.get(of)
        if wanted is None and name not in ours:
            continue  # of another turn
        yield of_value(f"step {step}: {name}", ours.get(name, 0.0), 0.0 if wanted is None else wanted, case.rounding)


def weight_deviations(case, step, peer, trace):
    if case.weights_until is not None and step >= case.weights_until:
        return
    for name, ours in trace.after[step].items():
        theirs = peer.tensor(name)
        if theirs is None:
            continue
        theirs = theirs.detach().reshape(ours.shape)
        before = torch.zeros_like(ours) if name in case.results else trace.before(step, name)
        yield of_tensor(f"step {step}: {name}", ours, theirs, before)


def logit_deviation(which, peer, trace):
    ours, theirs = trace.probe[which], peer.logits(trace.probe["images"])
    difference = ((ours - theirs).abs() / theirs.abs().clamp_min(1)).max()
    return Deviation(float(difference) / LOGIT_TOLERANCE, f"logits at the {which}")


def deviations(algorithms, case, trace, hparams):
    """Returns those of everything that is compared, in tolerances. NaN counts as infinity."""
    peer = domainbed_peer.Peer(algorithms, case, trace, dict(hparams))
    found = [logit_deviation("start", peer, trace)]
    for step in range(trace.steps):
        logged = peer.step(trace.batches[step], trace.draws[step])
        found += loss_deviations(case, step, trace.losses[step], logged, hparams)
        found += weight_deviations(case, step, peer, trace)
        if step + 1 < trace.steps:
            peer.load(trace.after[step])
    if case.weights_until is None:
        found.append(logit_deviation("end", peer, trace))
    return [Deviation(math.inf if math.isnan(d.tolerances) else d.tolerances, d.where) for d in found]


def worst(found):
    return max(found, key=lambda deviation: deviation.tolerances)


def wrong_hparams(case, name, key):
    return json.loads(run("hparams", name, json.dumps({**SHARED, **case.settings, key: case.wrong[key]})))


def judge(algorithms, name, folder):
    """(a line about the algorithm, what is wrong or "")"""
    case = CASES[name]
    trace = record(name, {**SHARED, **case.settings}, folder)
    found = deviations(algorithms, case, trace, trace.hparams)
    most = worst(found)
    line = f"{name:14} {len(found):4} values, largest deviation {most.tolerances:8.2g} tolerances ({most.where})"
    if case.note:
        line += f"; {case.note}"
    if most.tolerances > 1:
        first = next(deviation for deviation in found if deviation.tolerances > 1)
        return line, f"{name}: {first.where} differs by {first.tolerances:.3g} tolerances"
    for key in case.wrong:
        other = worst(deviations(algorithms, case, trace, wrong_hparams(case, name, key)))
        line += f"\n{'':14} {key} = {case.wrong[key]} is found by {other.tolerances:.2g} tolerances"
        if other.tolerances < FOUND:
            return line, f"{name}: a wrong {key} shows by {other.tolerances:.3g} tolerances only"
    return line, ""


def named_differences():
    """{algorithm: what the documentation says}, of the table of differences from DomainBed."""
    text = DOCUMENTATION.read_text().split("### Where they differ from DomainBed")[1]
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3:
            rows.update({name: f"{cells[1]} / here: {cells[2]}" for name in re.findall(r"`(\w+)`", cells[0])})
    return rows


def reason_not_compared(name, title, algorithms, differences):
    """"" if there is none."""
    if not hasattr(algorithms, title):
        return "DomainBed has no such class"
    return "" if name in CASES else differences.get(name, "")


def try_to_judge(algorithms, name, folder):
    try:
        return judge(algorithms, name, folder)
    except Exception as error:  # noqa: BLE001  (every algorithm is judged, whatever one of them does)
        if os.environ.get("SPARSIGHT_JUDGE_ALGORITHMS"):
            raise
        return f"{name:14} failed", f"{name}: {type(error).__name__}: {error}"


def main():
    if not DOMAINBED:
        print("SPARSIGHT_DOMAINBED names no checkout of DomainBed")
        return 77
    torch.set_num_threads(1)
    algorithms = domainbed_peer.load(DOMAINBED)
    titles = json.loads(run("list"))
    only, differences, failures = os.environ.get("SPARSIGHT_JUDGE_ALGORITHMS"), named_differences(), []
    with tempfile.TemporaryDirectory() as folder:
        for name, title in titles.items():
            if only and name not in only.split(","):
                continue
            if reason := reason_not_compared(name, title, algorithms, differences):
                print(f"{name:14} not comparable: {reason}")
                continue
            if name not in CASES or CASES[name].title != title:
                failures.append(f"{name}: neither compared nor named as different in {DOCUMENTATION.name}")
                continue
            line, failure = try_to_judge(algorithms, name, folder)
            print(line, flush=True)
            failures += [failure] if failure else []
    print("\n".join(failures) if failures else "all that are comparable agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
