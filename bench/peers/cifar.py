"""Times training steps of configs/cifar/dense.toml, without its MoE layer, beside an equal PyTorch program.

Both run in turn, round after round, a few steps each. Prints the medians and the ratio with its interval, and writes
what was measured as JSON. --accuracy trains both to the end, one after the other, and adds their accuracies and times.
Use: cifar.py --build build/release --data FOLDER [--threads 2] [--rounds 5] [--steps 6] [--accuracy [--seeds 3]] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import tempfile
import time

import torch

import rounds
from cifar_torch import Training

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs/cifar/dense.toml"
UNTIMED = 2  # the first steps of each turn


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the build")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("SPARSIGHT_DATA"), help="folder that has cifar10/")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="timed steps of a turn")
    parser.add_argument("--accuracy", action="store_true", help="also train both to the end")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each with --accuracy")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "bench/results/cifar_training.json")
    options = parser.parse_args()
    if options.data is None or not (options.data / "cifar10/data_batch_1.bin").exists():
        parser.error("no CIFAR-10: give --data, or set SPARSIGHT_DATA, to the folder that has cifar10/data_batch_1.bin")
    return options


def command(options, folder, *settings):
    program = options.build / "cli/sparsight"
    settings = [f"run.threads={options.threads}", "moe.blocks=[]", *settings]
    pairs = [part for setting in settings for part in ("--set", setting)]
    return [str(program), "train", str(CONFIG), "--out", str(folder), *pairs]


def new_training(options, seed=0):
    """The PyTorch program, of as many epochs as the configuration has."""
    text = CONFIG.with_name("moe.toml").read_text()  # the base of CONFIG
    return Training(options.data / "cifar10", int(re.search(r"^epochs = (\d+)", text, re.M)[1]), seed=seed)


def training_lines(folder):
    try:
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines(keepends=True) if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [line for line in lines if line["kind"] == "train"]


def our_step(options):
    """Seconds of a step, the median of some."""
    environment = dict(os.environ, SPARSIGHT_DATA=str(options.data))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "run"
        with subprocess.Popen(
            command(options, folder, "train.log_every=1"), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while len(lines := training_lines(folder)) < UNTIMED + 1 + options.steps:
                if process.poll() is not None:
                    raise SystemExit("error: the training ended early; run it by hand: " + " ".join(process.args))
                time.sleep(0.05)
            process.kill()
    times = [line["seconds"] for line in lines[UNTIMED:]]
    return statistics.median(b - a for a, b in zip(times, times[1:]))


def torch_step(training, steps):
    for _ in range(UNTIMED):
        training.train_step()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        training.train_step()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def full_trainings(options, seed):
    start = time.perf_counter()
    training = new_training(options, seed)
    while training.step < training.steps:
        training.train_step()
    torch_seconds = time.perf_counter() - start
    result = {"seed": seed, "torch_seconds": torch_seconds, "torch_accuracy": training.accuracy(options.data / "cifar10")}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "run"
        subprocess.run(command(options, folder, f"run.seed={seed}"), env=dict(os.environ, SPARSIGHT_DATA=str(options.data)), check=True)
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    result["seconds"] = [line for line in lines if line["kind"] == "done"][-1]["seconds"]
    result["accuracy"] = [line for line in lines if line["kind"] == "eval" and line["split"] == "test"][-1]["accuracy"]
    return result


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    training = new_training(options)
    ours, others = [], []
    watch = rounds.Interference()
    for _ in range(options.rounds):
        ours.append(our_step(options))
        others.append(torch_step(training, options.steps))
    result = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "threads": options.threads,
        "date": time.strftime("%Y-%m-%d"),
        "commit": os.environ.get("SPARSIGHT_COMMIT", ""),
        "batch": training.batch,
        "step_seconds": ours,
        "torch_step_seconds": others,
        "warning": watch.warning(),
    }
    if options.accuracy:
        result["trained"] = [full_trainings(options, seed) for seed in range(options.seeds)]
    rounds.header(f"step of {training.batch} images", "PyTorch, ms", "ours, ms", "ours / PyTorch")
    rounds.row(
        f"{options.threads} threads, fp32",
        rounds.milliseconds(statistics.median(others)),
        rounds.milliseconds(statistics.median(ours)),
        rounds.ratio_text(ours, others),
    )
    print(rounds.interval_note(options.rounds))
    if options.accuracy:
        for t in result["trained"]:
            print(
                f"trained with seed {t['seed']}: ours {100 * t['accuracy']:.2f} % in {t['seconds']:.0f} s, "
                f"PyTorch {100 * t['torch_accuracy']:.2f} % in {t['torch_seconds']:.0f} s"
            )
    if result["warning"]:
        print(result["warning"])
    options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
