"""Measures the share of the CPU time of trainings that the operating system's kernel takes: page faults, mostly.

Use: kernel_time.py PROGRAM... [--rounds N] [--json FILE]

PROGRAM is a `sparsight`; with several, as of two versions, they take turns. Prints a Markdown table; FILE gets the
numbers of all rounds.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time

GLYPHS = ["data.name=glyphs", "data.side=32", "data.channels=3", "data.train=640", "data.validation=64", "data.test=64",
          "loader.batch=64", "train.epochs=3", "train.keep=last", "optimizer.name=sgd", "optimizer.lr=0.01",
          'transforms.train=[{op="normalize", mean=[0.5], std=[0.5]}]',
          'transforms.eval=[{op="normalize", mean=[0.5], std=[0.5]}]']
TRAININGS = {
    "ViT 6x96": ["model.name=vit", "model.width=96", "model.heads=3"],
    "V-MoE 6x96, 8 experts": ["model.name=vit", "model.width=96", "model.heads=3", "moe.blocks=[3,5]", "moe.experts=8"],
    "CNN": ["model.name=cnn"],
    "ResNet-18, base width 32": ["model.name=resnet", "model.stem=cifar", "model.base_width=32"],
    "ResNet-18, base width 32, bf16": ["model.name=resnet", "model.stem=cifar", "model.base_width=32",
                                       "train.precision=bf16"],
    "WRN-10-4": ["model.name=wide_resnet", "model.widen=4"],
    "patch CNN (pMoE)": ["model.name=patch_cnn", "train.epochs=60"],
    "CNN by IRM on two domains": ["model.name=cnn", "algorithm.name=irm", 'data.domains=["clean","sketch"]',
                                  "loader.per_domain=true", "loader.batch=32"],
}


def run(command):
    """Wall, user and kernel seconds of a command."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}: {errors}")
    return {"wall": time.monotonic() - start, "user": usage.ru_utime, "kernel": usage.ru_stime}


def train(program, settings, folder, started):
    """The seconds of a training without `started`, those of loading the program, and its peak memory."""
    out = os.path.join(folder, "run")
    arguments = [word for setting in GLYPHS + settings for word in ("--set", setting)]
    config = os.path.join(folder, "defaults.toml")
    open(config, "w", encoding="utf-8").close()
    times = run([program, "train", config, "--overwrite", "--out", out, *arguments])
    result = {name: max(0.0, times[name] - started[name]) for name in times}
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as lines:
        done = [line for line in map(json.loads, lines) if line["kind"] == "done"][-1]
    return {**result, "peak_mib": done["peak_memory_mb"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    rows = {name: {program: [] for program in arguments.programs} for name in TRAININGS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            started = {program: run([program, "doctor"]) for program in arguments.programs}
            for name, settings in TRAININGS.items():
                for program in arguments.programs:
                    rows[name][program].append(train(program, settings, folder, started[program]))
    print("| training | program | user, s | kernel, s | kernel, % | peak, MiB |\n|---|---|--:|--:|--:|--:|")
    for name, results in rows.items():
        for number, program in enumerate(arguments.programs, 1):
            middle = {key: statistics.median(one[key] for one in results[program]) for key in results[program][0]}
            share = 100 * middle["kernel"] / max(1e-9, middle["kernel"] + middle["user"])
            print(f"| {name} | {number} | {middle['user']:.1f} | {middle['kernel']:.1f} | {share:.1f} | "
                  f"{middle['peak_mib']:.0f} |")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                       "date": time.strftime("%Y-%m-%d"), "programs": arguments.programs,
                       "rows": [{"training": name, "rounds": list(results.values())}
                                for name, results in rows.items()]}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
