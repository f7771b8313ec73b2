"""A small sweep in the log format of DomainBed, and the tables that its selection rules give, computed with NumPy.

    python tests/golden/domainbed/make_sweep.py

writes sweep.jsonl, the lines of all runs (DomainBed has those of each in <output_dir>/results.jsonl), and
sweep_tables.json, the cells of every table. Accuracies are random numbers.
"""
import itertools
import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
ENVIRONMENTS = ["C", "L", "S", "V"]  # of VLCS
STEPS = [0, 300, 600]


def test_sets(pairs):
    singles = [[e] for e in range(len(ENVIRONMENTS))]
    return singles + ([list(pair) for pair in itertools.combinations(range(len(ENVIRONMENTS)), 2)] if pairs else [])


def make_runs(random):
    """Arrays "in" and "out" [steps, environments] by (algorithm, trial, hparams seed, test environments)."""
    runs = {}
    for algorithm, trials, hparams, pairs in [("ERM", 3, 2, True), ("GroupDRO", 1, 2, False)]:
        for trial, seed, tested in itertools.product(range(trials), range(hparams), test_sets(pairs)):
            shape = (len(STEPS), len(ENVIRONMENTS))
            runs[algorithm, trial, seed, tuple(tested)] = {
                half: np.round(random.uniform(0.4, 0.95, shape), 4) for half in ("in", "out")}
    return runs


def log_lines(key, accuracy):
    algorithm, trial, seed, tested = key
    hparams = {"batch_size": 32, "class_balanced": False, "lr": 5e-05, "resnet_dropout": 0.0, "weight_decay": 0.0}
    args = {"algorithm": algorithm, "checkpoint_freq": None, "data_dir": "/data", "dataset": "VLCS",
            "holdout_fraction": 0.2, "hparams": None, "hparams_seed": seed,
            "output_dir": "sweep/" + "-".join(map(str, [algorithm.lower(), trial, seed, *tested])),
            "seed": 1000 * trial + seed, "skip_model_save": False, "steps": 601, "task": "domain_generalization",
            "test_envs": list(tested), "trial_seed": trial, "uda_holdout_fraction": 0}
    for s, step in enumerate(STEPS):
        line = {"args": args, "epoch": step / 70, "hparams": hparams, "loss": 1.5 / (s + 1), "mem_gb": 4.25,
                "step": step, "step_time": 0.3}
        for e in range(len(ENVIRONMENTS)):
            for half in ("in", "out"):
                line[f"env{e}_{half}_acc"] = float(accuracy[half][s, e])
        yield json.dumps(line, sort_keys=True)


def training_domains(runs, algorithm, trial, test):
    others = [e for e in range(len(ENVIRONMENTS)) if e != test]
    best = None
    for (name, of, _, tested), accuracy in runs.items():
        if (name, of, tested) != (algorithm, trial, (test,)):
            continue
        validation = accuracy["out"][:, others].mean(axis=1)
        step = validation.argmax()
        if best is None or validation[step] > best[0]:
            best = validation[step], accuracy["in"][step, test]
    return best[1] if best else None


def oracle(runs, algorithm, trial, test):
    last = [(a["out"][-1, test], a["in"][-1, test]) for (name, of, _, tested), a in runs.items()
            if (name, of, tested) == (algorithm, trial, (test,))]
    return max(last)[1] if last else None


def leave_one_out(runs, algorithm, trial, test):
    best = None
    for (name, of, seed, tested), accuracy in runs.items():
        if (name, of, tested) != (algorithm, trial, (test,)):
            continue
        others = [e for e in range(len(ENVIRONMENTS)) if e != test]
        pairs = [runs.get((algorithm, trial, seed, tuple(sorted([test, e])))) for e in others]
        if any(pair is None for pair in pairs):
            continue
        validation = np.mean([pair["in"][:, e] for pair, e in zip(pairs, others)], axis=0)
        step = validation.argmax()
        if best is None or validation[step] > best[0]:
            best = validation[step], accuracy["in"][step, test]
    return best[1] if best else None


def cell(values):
    percent = 100 * np.array(values)
    return f"{percent.mean():.1f} +/- {percent.std() / np.sqrt(len(percent)):.1f}"


def table(runs, rule):
    rows = {}
    for algorithm in sorted({key[0] for key in runs}):
        trials = sorted({key[1] for key in runs if key[0] == algorithm})
        chosen = [[rule(runs, algorithm, trial, test) for test in range(len(ENVIRONMENTS))] for trial in trials]
        if None in itertools.chain(*chosen):
            continue
        chosen = np.array(chosen)
        rows[algorithm] = [cell(chosen[:, e]) for e in range(len(ENVIRONMENTS))] + [cell(chosen.mean(axis=1))]
    return rows


def main():
    runs = make_runs(np.random.RandomState(7))
    lines = [line for key, accuracy in runs.items() for line in log_lines(key, accuracy)]
    (HERE / "sweep.jsonl").write_text("\n".join(lines) + "\n")
    tables = {"columns": [*ENVIRONMENTS, "Avg"],
              "training-domain validation": table(runs, training_domains),
              "leave-one-domain-out": table(runs, leave_one_out), "oracle": table(runs, oracle)}
    (HERE / "sweep_tables.json").write_text(json.dumps(tables, indent=1) + "\n")


main()
