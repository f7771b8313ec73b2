"""Top-1 accuracy, agreement with fp32, time and size of trained models with weights in fp32, bf16, int8, and chosen step
by step ("auto"). Prints a table and writes what was measured as JSON. Use, with an interpreter that has NumPy:
  weight_types.py --build build/release [--json FILE] RUN...
A run is a folder of `sparsight train`. Accuracy and agreement are those of all its test images, or with RUN:val of its
validation images. Times are those of one image on one thread, in rounds in which all types run in
turn, each round in another order.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

import rounds
from mobile_models import ROOT, make_package

TYPES = ["fp32", "bf16", "int8", "auto"]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN[:SPLIT]")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the build")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "bench/results/weight_types.json")
    parser.add_argument("--print", action="store_true", help="print the table of the file of results again")
    options = parser.parse_args()
    if not options.runs and not options.print:
        parser.error("name at least one run, a folder that `sparsight train` wrote")
    return options


def ask(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command[:2]))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def exported(options, run, split, folder):
    """The files of a run by type, and what was said about each."""
    files = {kind: folder / f"{kind}.sparsight" for kind in TYPES}
    program = options.build / "cli/sparsight"
    said = {
        kind: ask(program, "export", run, "--weights", kind, "--split", split, "--json", "--out", file)
        for kind, file in files.items()
    }
    return files, said


def seconds_in_turn(files, count):
    """Seconds of an image, by type: one for each round."""
    import sparsight_infer as infer

    shuffled, pixels = random.Random(1), None
    models = {kind: infer.open(str(file), threads=1) for kind, file in files.items()}
    times = {kind: [] for kind in models}
    for number in range(count + 1):  # the first warms up
        order = list(models)
        shuffled.shuffle(order)
        for kind in order:
            if pixels is None:
                pixels = np.random.default_rng(1).random((1, *models[kind].shape), dtype=np.float32)
            runs, start = 0, time.perf_counter()
            while time.perf_counter() - start < 0.1:
                models[kind].logits(pixels)
                runs += 1
            if number > 0:
                times[kind].append((time.perf_counter() - start) / runs)
    return times


def routing_name(about):
    routers = sorted({step["router"] for step in about["steps"] if step.get("router")})
    return ", ".join(routers) or "dense"


def measure(options, named):
    path, _, split = named.partition(":")
    run = pathlib.Path(path)
    with tempfile.TemporaryDirectory() as folder:
        files, said = exported(options, run, split or "test", pathlib.Path(folder))
        about = ask(options.build / "cli/sparsight", "inspect", files["fp32"], "--json")
        watch = rounds.Interference()
        times = seconds_in_turn(files, options.rounds)
        rows = []
        for kind in TYPES:
            median, low, high, _ = rounds.median_interval(times[kind])
            ratio = rounds.median_interval([a / b for a, b in zip(times[kind], times["fp32"])])
            rows.append(
                dict(
                    type=kind,
                    types=said[kind].get("types"),
                    accuracy=said[kind]["accuracy"],
                    agreement=said[kind]["agreement"],
                    images=said[kind]["images"],
                    split=said[kind]["split"],
                    bytes=said[kind]["bytes"],
                    seconds=dict(median=median, low=low, high=high),
                    ratio=dict(median=ratio[0], low=ratio[1], high=ratio[2]),
                )
            )
        return dict(run=run.name, routing=routing_name(about), rows=rows, warning=watch.warning())


def print_table(results):
    rounds.header("model", "router", "weights", "top-1, %", "same class, %", "ms", "/ fp32", "MB")
    for model in results["models"]:
        for row in model["rows"]:
            ratio = row["ratio"]
            rounds.row(
                model["run"],
                model["routing"],
                row["type"],
                f"{100 * row['accuracy']:.2f}",
                f"{100 * row['agreement']:.2f}",
                rounds.milliseconds(row["seconds"]["median"]),
                f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]",
                f"{row['bytes'] / 1e6:.2f}",
            )
    for warning in sorted({model["warning"] for model in results["models"]} - {""}):
        print(warning)


def main():
    options = parse_options()
    if options.print:
        return print_table(json.loads(options.json.read_text()))
    results = dict(
        benchmark="weight_types",
        machine=platform.processor() or platform.machine(),
        commit=os.environ.get("SPARSIGHT_COMMIT", ""),
        rounds=options.rounds,
    )
    with tempfile.TemporaryDirectory() as folder:
        make_package(options.build, pathlib.Path(folder))
        sys.path.insert(0, folder)
        results["models"] = [measure(options, run) for run in options.runs]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    print_table(results)


if __name__ == "__main__":
    main()
