#!/usr/bin/env python3
"""Converts the metrics.jsonl of run folders to TensorBoard event files.

    pip install torch tensorboard
    tools/metrics_to_tensorboard.py runs/a runs/b --out tensorboard
    tensorboard --logdir tensorboard

Each run becomes a folder of --out. Numbers become scalars named KIND/KEY ("train/loss", "val/accuracy"), loads of MoE
layers scalars named "val/load/LAYER/EXPERT" (shares of all tokens), and notes text. Running it again replaces its
earlier output.
"""
import argparse
import json
import pathlib
import sys

NOT_VALUES = {"kind", "split", "step", "epoch", "weights", "layers", "class_expert", "losses", "text"}


def read_lines(path):
    """The complete lines of a log; an unfinished last line of a killed run is skipped."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                sys.exit(f"error: {path}:{number} is not JSON")
            if not isinstance(record, dict):
                sys.exit(f"error: {path}:{number} is not a JSON object")
            yield record


def find_scalars(record):
    """(tag, number) of everything in one line that can be plotted as a curve."""
    group = record.get("split", "eval") if record["kind"] == "eval" else record["kind"]
    if record.get("reported") is False:
        group += f" ({record.get('weights')} weights)"  # beside the averaged ones, which are the result
    for key, value in record.items():
        if key not in NOT_VALUES and isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{group}/{key}", value
    for table in ("losses", "router_accuracies", "touched"):
        for name, value in record.get(table, {}).items():
            if value is not None:
                yield f"{group}/{table}/{name}", value
    for layer in record.get("layers", []):
        for key, value in layer.items():
            if key not in ("layer", "experts") and isinstance(value, (int, float)):
                yield f"{group}/{key}/{layer['layer']}", value
        total = sum(layer.get("load", [])) or 1
        for expert, count in enumerate(layer.get("load", [])):
            yield f"{group}/load/{layer['layer']}/{expert}", count / total


def convert(run, out, make_writer):
    log = run / "metrics.jsonl"
    if not log.is_file():
        sys.exit(f"error: {run} is not a run folder: it has no metrics.jsonl")
    for old in out.glob("events.out.tfevents.*"):
        old.unlink()
    writer = make_writer(str(out))
    count = 0
    for record in read_lines(log):
        step = record.get("step", 0)
        for tag, value in find_scalars(record):
            writer.add_scalar(tag, value, step)
            count += 1
        if record["kind"] == "note":
            writer.add_text("note", record.get("text", ""), step)
    writer.close()
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path, metavar="RUN")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tensorboard"))
    arguments = parser.parse_args()
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        sys.exit("error: this needs TensorBoard; install it with: pip install torch tensorboard")
    for run in arguments.runs:
        out = arguments.out / run.resolve().name
        print(f"{run} -> {out}: {convert(run, out, SummaryWriter)} values")


if __name__ == "__main__":
    main()
