"""Sweeps with many ties and some gaps, and what DomainBed's selection rules choose.

    python tests/golden/domainbed/make_selection.py

writes selection.json. The rules follow the order of facebookresearch/DomainBed, domainbed/model_selection.py and
lib/query.py (commit b93c22a): records are grouped by hyper-parameter seed, in ascending order; a checkpoint is the first
maximum of its run; hyper-parameters are sorted by validation, stably, and the reverse of that list begins with the choice.
Accuracies are random multiples of 0.1; a tenth of the runs and a tenth of the checkpoints are missing.
"""
import itertools
import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
ENVIRONMENTS, STEPS, SEEDS = 4, [0, 300, 600], 4


def make_sweep(random):
    sets = [[e] for e in range(ENVIRONMENTS)] + [list(p) for p in itertools.combinations(range(ENVIRONMENTS), 2)]
    records = []
    for tested, seed in itertools.product(sets, range(SEEDS)):
        if random.uniform() < 0.1:
            continue
        for step in STEPS:
            if step > 0 and random.uniform() < 0.1:
                continue
            draw = lambda: [round(float(v), 1) for v in random.randint(4, 9, ENVIRONMENTS) / 10]
            records.append({"test_envs": tested, "hparams_seed": seed, "step": step, "in": draw(), "out": draw()})
    return records


def first_maximum(choices):
    return max(choices, key=lambda c: c[0]) if choices else None  # max() takes the first


def iid(records, test):
    alone = [r for r in records if r["test_envs"] == [test]]
    return first_maximum([(np.mean([a for e, a in enumerate(r["out"]) if e != test]), r["in"][test]) for r in alone])


def oracle(records, test):
    alone = sorted([r for r in records if r["test_envs"] == [test]], key=lambda r: r["step"])
    return (alone[-1]["out"][test], alone[-1]["in"][test]) if alone else None


def leave_one_out(records, test):
    choices = []
    for step in sorted({r["step"] for r in records}):
        here = [r for r in records if r["step"] == step]
        alone = [r for r in here if r["test_envs"] == [test]]
        if len(alone) != 1:
            continue
        validation = np.zeros(ENVIRONMENTS) - 1
        for r in here:
            if len(r["test_envs"]) == 2:
                other = (set(r["test_envs"]) - {test}).pop()
                validation[other] = r["in"][other]
        validation = np.delete(validation, test)
        if (validation == -1).any():
            continue
        choices.append((np.sum(validation) / (ENVIRONMENTS - 1), alone[0]["in"][test]))
    return first_maximum(choices)


def chosen(records, test, rule):
    group = [r for r in records if test in r["test_envs"]]
    by_seed = [rule([r for r in group if r["hparams_seed"] == seed], test)
               for seed in sorted({r["hparams_seed"] for r in group})]
    ranked = sorted([c for c in by_seed if c is not None], key=lambda c: c[0])[::-1]
    return ranked[0][1] if ranked else None


def main():
    random, sweeps = np.random.RandomState(3), []
    for _ in range(24):
        records = make_sweep(random)
        rules = {"training-domain validation": iid, "leave-one-domain-out": leave_one_out, "oracle": oracle}
        sweeps.append({"records": records,
                       "chosen": {name: [chosen(records, test, rule) for test in range(ENVIRONMENTS)]
                                  for name, rule in rules.items()}})
    (HERE / "selection.json").write_text("[\n" + ",\n".join(json.dumps(sweep) for sweep in sweeps) + "\n]\n")


if __name__ == "__main__":
    main()
