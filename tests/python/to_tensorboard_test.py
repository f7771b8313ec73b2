"""The converter's event files, read back with TensorBoard's own reader."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("tensorboard is not installed")
    sys.exit(77)

TOOL = pathlib.Path(__file__).resolve().parents[2] / "python/sparsight/to_tensorboard.py"
LINES = [
    {"kind": "train", "step": 20, "epoch": 0, "loss": 2.5, "losses": {"load": 0.25}, "lr": 0.001},
    {"kind": "train", "step": 40, "epoch": 1, "loss": 1.5, "losses": {"load": None}, "lr": 0.002},
    {"kind": "eval", "split": "val", "step": 40, "accuracy": 0.75, "layers": [{"layer": "blocks.1.mlp", "load": [30, 10], "cv_load": 0.5}],
     "class_expert": {"blocks.1.mlp": [[20, 0], [10, 10], [0, 0]]}},
    {"kind": "train", "step": 60, "router_accuracy": 0.5, "router_accuracies": {"blocks.1.mlp": 0.25, "blocks.3.mlp": 0.75}},
    {"kind": "eval", "split": "test", "step": 60, "weights": "model", "reported": False, "router_accuracy": 0.875, "touched": {"bytes": 64}},
    {"kind": "eval", "split": "test", "step": 60, "weights": "ema", "reported": True, "router_accuracy": 1.0,
     "layers": [{"layer": "router", "router_accuracy": 1.0, "experts_per_image": 1.0}]},
    {"kind": "note", "step": 40, "text": "resumed"},
]


def convert(folder, text):
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run/metrics.jsonl").write_text(text)
    return subprocess.run([sys.executable, TOOL, folder / "run", "--out", folder / "board"], text=True, capture_output=True)


def scalars(folder):
    events = EventAccumulator(str(folder)).Reload()
    return {tag: [e.step for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def wait_for(reached):
    for _ in range(400):
        if reached():
            return
        time.sleep(0.1)
    raise AssertionError("nothing new within 40 s")


def follow(folder, whole):
    """Lines are written while it looks; a resumed run cuts its log; the file `done` ends it."""
    run, board = folder / "live", folder / "board/live"
    run.mkdir()
    log = run / "metrics.jsonl"
    log.write_text(whole)
    process = subprocess.Popen([sys.executable, TOOL, run, "--out", folder / "board", "--follow", "--every", "0.1"])
    try:
        wait_for(lambda: board.exists() and scalars(board).get("train/loss") == [20, 40])
        with log.open("a") as file:
            file.write('{"kind": "train", "step": 80, "loss": 1}\n{"kind": "tr')
        wait_for(lambda: scalars(board).get("train/loss") == [20, 40, 80])
        log.write_text('{"kind": "train", "step": 20, "loss": 3}\n')
        wait_for(lambda: scalars(board).get("train/loss") == [20])
        (run / "done").touch()
        assert process.wait(timeout=40) == 0
    finally:
        process.kill()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        whole = "".join(json.dumps(line) + "\n" for line in LINES)
        for _ in range(2):  # the second time replaces the first
            result = convert(folder, whole + '{"kind": "train", "st')
            assert result.returncode == 0, result.stderr
        events = EventAccumulator(str(folder / "board/run")).Reload()
        values = {tag: [(e.step, round(e.value, 6)) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
        assert values["train/loss"] == [(20, 2.5), (40, 1.5)], values
        assert values["train/losses/load"] == [(20, 0.25)], values
        assert values["val/accuracy"] == [(40, 0.75)], values
        assert values["val/load/blocks.1.mlp/0"] == [(40, 0.75)], values  # 30 of 40
        assert values["val/cv_load/blocks.1.mlp"] == [(40, 0.5)], values
        assert values["train/router_accuracy"] == [(60, 0.5)], values
        assert values["train/router_accuracies/blocks.3.mlp"] == [(60, 0.75)], values
        assert values["test/router_accuracy"] == [(60, 1)], values
        assert values["test/router_accuracy/router"] == [(60, 1)], values
        assert values["test (model weights)/router_accuracy"] == [(60, 0.875)], values
        assert values["test (model weights)/touched/bytes"] == [(60, 64)], values
        (histogram,) = events.Histograms("val/experts/blocks.1.mlp")
        assert list(histogram.histogram_value.bucket) == [30, 10], histogram
        (image,) = events.Images("val/class_expert/blocks.1.mlp")
        assert (image.width, image.height) == (16, 24), image
        follow(folder, whole)
        for line in ({"kind": "eval", "layers": [1]}, {"kind": "train", "losses": [2]}, {"kind": "eval", "step": "x", "loss": 1},
                     {"kind": "eval", "class_expert": {"a": [[1], [1, 2]]}}):
            damaged = convert(folder, json.dumps(line) + "\n")
            assert damaged.returncode == 1 and "metrics.jsonl:1 is not a record" in damaged.stderr, (line, damaged.stderr)
        twice = subprocess.run([sys.executable, TOOL, folder / "run", folder / "run"], text=True, capture_output=True)
        assert twice.returncode == 1 and "two runs are named run" in twice.stderr, twice.stderr
        damaged = convert(folder, "no JSON\n")
        assert damaged.returncode == 1 and "metrics.jsonl:1 is not JSON" in damaged.stderr, damaged.stderr


main()
