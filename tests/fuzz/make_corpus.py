"""Makes tests/fuzz/corpus: a few small, right files of each kind, for the fuzzer to start from.

    python tests/fuzz/make_corpus.py       (needs NumPy and torch)
"""
import gzip
import io
import json
import pathlib
import shutil
import tarfile
import zipfile

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).parent / "corpus"
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
SHARD_LINES = [
    {"format": "sparsight-shards", "version": 1, "shards": 1},
    {"shard": "train-0.tar", "split": "train", "bytes": 4096, "images": ["0.png", "1.png"], "offsets": [512, 2048], "sizes": [5, 6],
     "labels": [3, "cat"], "checksums": ["0123456789abcdef", "00000000000000ff"]},
]
COMMAND_LINES = {
    "train": "train demo.toml --set train.epochs=2 --out runs/demo --overwrite --quiet",
    "predict": "predict runs/demo a.png - --top 3 --json --checkpoint best --weights int8",
    "cost": "config cost demo.toml --image 1,32,32 --classes 12 --flops multiply_adds",
    "moe": "moe tokens.npy --mode train --seed 3 --grid 2,2 --prefix 1 --float64 --routing r",
    "reproduce": "reproduce pmoe/fig4 --scale smoke --jobs 2 --slurm a.sh --tasks 5",
    "fetch": "--log-json data fetch mnist --mirror http://localhost --to folder",
    "help": "eval --help",
    "wrong": "train --epochs 2 --lr=1",
}


def write(kind, name, data):
    (FOLDER / kind).mkdir(parents=True, exist_ok=True)
    (FOLDER / kind / name).write_bytes(data)


def torch_file(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def safetensors_file(metadata, arrays):
    """Without checksums, so that the fuzzer gets behind them."""
    header, at = {"__metadata__": metadata}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in arrays.values())


def write_json_files():
    train = {"kind": "train", "step": 10, "epoch": 0, "loss": 1.5, "losses": {"load": 0.1}, "accuracy": 0.5, "seconds": 1}
    layer = {"layer": "blocks.1.mlp", "experts": 2, "load": [3, 1], "dropped": 0.0}
    evaluation = {"kind": "eval", "split": "val", "weights": "model", "step": 10, "accuracy": 0.5, "layers": [layer]}
    test = {**evaluation, "split": "test", "same_as": "val"}
    lines = [train, evaluation, {"kind": "note", "step": 10, "text": "resumed"}, test, {"kind": "done", "step": 10}]
    write("metrics", "run", "".join(json.dumps(line) + "\n" for line in lines).encode())
    write("metrics", "torn", b'{"kind": "train", "step": 1, "loss": null}\n\n{"kind": "tr')
    state = {"step": 12, "best_accuracy": 0.75, "best_step": 8, "evaluated_step": 10, "evaluations_since_best": 1, "seconds": 3.5}
    means = {"loss": [1.5, 2], "losses/load": [None, 2]}
    write("checkpoint", "state", json.dumps({**state, "window": {"images": 64, "seconds": 0.25, "means": means}}).encode())
    earlier = {"batches": 2, "images": 64, "correct": 40, "loss": 1.25, "task_loss": 1.0, "seconds": 0.25, "auxiliary": {"load": 0.5}}
    metadata = {"format": "sparsight-checkpoint", "version": "2", "config": "{}", "state": json.dumps(state)}
    slots = [("weight", (2, 3)), ("bias", (3,))]
    write("checkpoint", "adam", safetensors_file(metadata, {
        **{f"training/optimizer/{name}/{slot}": np.full(shape, 0.5, "f4") for name, shape in slots for slot in ("exp_avg", "exp_avg_sq")},
        **{f"training/optimizer/{name}/step": np.array(4, "f4") for name, _ in slots}}))
    write("checkpoint", "earlier", json.dumps({**state, "window": earlier}).encode())
    examples = [{"id": "a.png", "true": "cat", "predicted": "dog", "probability": 0.5, "picture": "000_image.png",
                 "experts": "../secret", "caption": "patches"}]
    write("explain", "run", json.dumps({"format": "sparsight-explain", "version": 1, "caption": "best checkpoint", "classes": ["cat", "dog"],
                                        "class_expert": {"a": [[1, 2], [3, 4]]}, "patch_routing": [], "examples": examples}).encode())


def shard(format, members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as archive:
        for name, body in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()[:1024 * len(members) + 4096]


def write_shards():
    members = {"d/0.jpg": b"picture", "d/0.cls": b"3", "d/0.json": b"{}", "1.png": b"p", "1.cls": b"cat\n"}
    long = {"n" * 120 + ending: b"1" for ending in (".jpg", ".cls")}
    write("webdataset", "ustar", shard(tarfile.USTAR_FORMAT, members))
    write("webdataset", "gnu", shard(tarfile.GNU_FORMAT, long))
    write("webdataset", "pax", shard(tarfile.PAX_FORMAT, long))
    write("webdataset", "index", b"i" + b"".join(json.dumps(line).encode() + b"\n" for line in SHARD_LINES))
    write("webdataset", "pattern", b"p{train,more}-{00..12}.tar::b.tar")
    write("webdataset", "classes", b"ccat\r\ndog\n")


def main():
    idx = b"\0\0\x08\3" + b"".join(n.to_bytes(4, "big") for n in (2, 2, 3)) + bytes(range(12))
    write("idx", "plain", idx)
    write("idx", "packed", gzip.compress(idx, mtime=0))
    write("cifar", "ten", bytes([3]) + bytes(3072))
    write("cifar", "hundred", bytes([4, 0]) + bytes(3072))
    for name, array in {"u1": np.arange(6, dtype="u1").reshape(2, 3), "f4": np.asfortranarray(np.ones((2, 3), "f4")), "i8": np.array(7)}.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        write("npy", name, buffer.getvalue())
    for path in GOLDEN.glob("images/*"):
        if path.suffix in (".jpg", ".png", ".webp", ".gif", ".bmp", ".tif") and path.name not in {f"exif{i}.jpg" for i in (2, 3, 4, 5, 7, 8)}:
            (FOLDER / "image").mkdir(parents=True, exist_ok=True)
            shutil.copy(path, FOLDER / "image" / path.name)
    write("manifest", "names", b'path,label,domain,split,size\n"a, ""b"".png",cat,indoor,train,1.5\nc.png,dog,outdoor,test,-2e3\n')
    write("manifest", "numbers", b"\xef\xbb\xbfpath,label\r\na.png,0\r\nb.png,2\r\n")
    write("celeba", "two", b"2\nBald Smiling \n000001.jpg -1  1\n000002.jpg  1 -1\n\x00000001.jpg 0\n000002.jpg 2\n")
    write("superclass_map", "three", b"0\n1\n 2 \r\n1\n0")
    write("superclass_map", "gap", b"0\n3\n")
    write("config", "toml", b'[train]\nepochs = 3 # x\n[data]\nname = "glyphs"\nlist = [1, 2.5, "a"]\n[transforms]\ntrain = [{op = "flip"}]\n')
    shutil.copy(GOLDEN / "io" / "python.safetensors", FOLDER / "safetensors" / "python")
    buffer = io.BytesIO()
    torch.save({"layer.weight": torch.ones(2, 3), "nested": {"step": 4, "name": "x"}, "list": [1.5, None, True]}, buffer)
    with zipfile.ZipFile(buffer) as archive:
        pickled = [name for name in archive.namelist() if name.endswith("data.pkl")]
        write("pickle", "state_dict", archive.read(pickled[0]))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, body in {"d/b": b"x" * 600, "a": b"hello"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    write("torch_pickle", "state_dict", torch_file({"layer.weight": torch.ones(2, 3), "layer.bias": torch.zeros(3, dtype=torch.int64)}))
    write("torch_pickle", "nested", torch_file({"epoch": 3, "state_dict": {"module.a": torch.arange(4.0)[1:3]}}))
    write_json_files()
    write("set", "values", b'train.epochs=3\ntrain.lr=1e-3\ntrain.flag=true\ntrain.name=y\ntrain.integers=[1, 2]\ntrain.floats=[0.5, nan]\n')
    write("set", "texts", b'train.strings=["a", "b"]\ntrain.tables=[{op = "flip", p = 0.5}]\nmore.text=a word\nmore.quoted="\\u007f\\u00e9"\n')
    for name, line in COMMAND_LINES.items():
        write("arguments", name, line.replace(" ", "\n").encode())
    write_shards()
    # What differs from the right file: bytes cut (2), and behind the identity file_bytes, arrays, and the first entry.
    write("packed", "right", bytes(2))
    write("packed", "cut", bytes([100, 1]))
    write("packed", "more_arrays", bytes(10) + b"\xff\xff")
    write("packed", "bytes", bytes(26) + b"\xff" * 8)
    write("packed", "offset", bytes(76) + b"\xff" * 5 + b"\x7f")
    write("untar", "plain", buffer.getvalue())
    write("untar", "packed", gzip.compress(buffer.getvalue(), mtime=0))


if __name__ == "__main__":
    main()
