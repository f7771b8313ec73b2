#!/usr/bin/env python3
"""Writes the metrics of runs as TensorBoard event files, by torch's SummaryWriter.

    pip install torch tensorboard
    python -m sparsight.to_tensorboard runs/a runs/b
    python -m sparsight.to_tensorboard runs/a --follow        (while it trains, in another terminal)
    tensorboard --logdir tensorboard

Each run becomes a folder of --out. Numbers become scalars named KIND/KEY ("train/loss", "val/accuracy"), loads of MoE
layers scalars named "val/load/LAYER/EXPERT" (shares of all tokens) and histograms over experts, the classes that each
expert takes an image (rows are classes, columns experts, white the largest share of a class), and notes text. Running
it again replaces its earlier output.
"""
import argparse
import json
import os
import pathlib
import sys
import time

NOT_VALUES = {"kind", "split", "step", "epoch", "weights", "layers", "class_expert", "losses", "text"}


class Log:
    """The complete lines of metrics.jsonl, as far as they are written: each of them once."""

    def __init__(self, path):
        self.path, self.read, self.lines, self.inode = path, 0, 0, None

    def replaced(self):
        """Whether a resumed or another run has put another file there, or cut it below what was read."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return False  # between two files
        return self.inode is not None and (found.st_ino != self.inode or found.st_size < self.read)

    def new_records(self):
        try:
            with open(self.path, "rb") as file:
                self.inode = os.fstat(file.fileno()).st_ino
                file.seek(self.read)
                content = file.read()
        except FileNotFoundError:
            return
        whole = content[:content.rfind(b"\n") + 1]  # the last line of a killed run may be unfinished
        self.read += len(whole)
        for line in whole.splitlines():
            self.lines += 1
            try:
                record = json.loads(line)
            except ValueError:
                sys.exit(f"error: {self.path}:{self.lines} is not JSON")
            if not isinstance(record, dict):
                sys.exit(f"error: {self.path}:{self.lines} is not a JSON object")
            yield record


def group_of(record):
    group = record.get("split", "eval") if record.get("kind") == "eval" else record.get("kind", "other")
    # Raw weights are evaluated beside the averaged ones, which are the result.
    return f"{group} ({record.get('weights')} weights)" if record.get("reported") is False else group


def find_scalars(record):
    """(tag, number) of everything in one line that can be plotted as a curve."""
    group = group_of(record)
    for key, value in record.items():
        if key not in NOT_VALUES and isinstance(value, (int, float)) and not isinstance(value, bool):
            yield f"{group}/{key}", value
    for table in ("losses", "router_accuracies", "touched"):
        for name, value in (record.get(table) or {}).items():
            if value is not None:
                yield f"{group}/{table}/{name}", value
    for layer in record.get("layers", []):
        for key, value in layer.items():
            if key not in ("layer", "experts") and isinstance(value, (int, float)):
                yield f"{group}/{key}/{layer['layer']}", value
        total = sum(layer.get("load", [])) or 1
        for expert, count in enumerate(layer.get("load", [])):
            yield f"{group}/load/{layer['layer']}/{expert}", count / total


def add_load(writer, tag, load, step):
    """The load as a histogram whose buckets are the experts."""
    moments = [sum(count * expert**power for expert, count in enumerate(load)) for power in (0, 1, 2)]
    writer.add_histogram_raw(tag, min=0, max=len(load) - 1, num=moments[0], sum=moments[1], sum_squares=moments[2],
                             bucket_limits=[expert + 0.5 for expert in range(len(load))], bucket_counts=load,
                             global_step=step)


def add_record(writer, record):
    """Returns the number of scalars."""
    step, count = record.get("step", 0), 0
    for tag, value in find_scalars(record):
        writer.add_scalar(tag, value, step)
        count += 1
    if record.get("kind") == "note":
        writer.add_text("note", record.get("text", ""), step)
    if record.get("kind") != "eval":
        return count
    for layer in record.get("layers", []):
        if len(layer.get("load", [])) > 1 and sum(layer["load"]) > 0:
            add_load(writer, f"{group_of(record)}/experts/{layer['layer']}", layer["load"], step)
    import numpy
    for layer, counts in (record.get("class_expert") or {}).items():
        table = numpy.asarray(counts, dtype=float)
        if table.ndim == 2 and table.size:
            table /= numpy.maximum(table.max(1, keepdims=True), 1)
            writer.add_image(f"{group_of(record)}/class_expert/{layer}", numpy.kron(table, numpy.ones((8, 8)))[None], step)
    return count


class Run:
    """One run and the event file that is written of it."""

    def __init__(self, run, out, make_writer):
        self.run, self.out, self.make_writer = run, out, make_writer
        if not (run / "metrics.jsonl").is_file():
            sys.exit(f"error: {run} is not a run folder: it has no metrics.jsonl")
        self.begin()

    def begin(self):
        for old in self.out.glob("events.out.tfevents.*"):
            old.unlink()
        self.log, self.writer, self.values = Log(self.run / "metrics.jsonl"), self.make_writer(str(self.out)), 0

    def update(self):
        if self.log.replaced():
            self.writer.close()
            self.begin()
        for record in self.log.new_records():
            try:
                self.values += add_record(self.writer, record)
            except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
                sys.exit(f"error: {self.log.path}:{self.log.lines} is not a record of a run")
        self.writer.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=pathlib.Path, metavar="RUN")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tensorboard"))
    parser.add_argument("--follow", action="store_true", help="go on until the runs are finished, or Ctrl-C")
    parser.add_argument("--every", type=float, default=5, metavar="SECONDS", help="between two looks of --follow")
    arguments = parser.parse_args()
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        sys.exit("error: this needs TensorBoard; install it with: pip install torch tensorboard")
    names = [run.resolve().name for run in arguments.runs]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"error: two runs are named {name}, and would write into one folder; give each its own --out")
    runs = [Run(run, arguments.out / run.resolve().name, SummaryWriter) for run in arguments.runs]
    try:
        while True:
            finished = all((run.run / "done").exists() for run in runs)  # before the last look at their logs
            for run in runs:
                run.update()
            if finished or not arguments.follow:
                break
            time.sleep(max(0.1, arguments.every))
    except KeyboardInterrupt:
        pass
    for run in runs:
        run.writer.close()
        print(f"{run.run} -> {run.out}: {run.values} values")


if __name__ == "__main__":
    main()
