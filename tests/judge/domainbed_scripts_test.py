"""DomainBed's own collect_results on a folder that `sparsight dg export` wrote, beside `sparsight dg table` on the same runs:
every mean and error of all three selection rules must agree as printed. SPARSIGHT_DOMAINBED names a checkout of
github.com/facebookresearch/DomainBed; without it the test is skipped."""
import csv
import io
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

PROGRAM = os.environ["SPARSIGHT_PROGRAM"]
DOMAINBED = os.environ.get("SPARSIGHT_DOMAINBED", "")
# The packages that DomainBed imports for training; its tables need none of them.
COLLECT = """
import runpy, sys, types
from unittest import mock
for name in ("backpack", "backpack.extensions", "timm", "torchvision", "torchvision.datasets", "torchvision.datasets.folder",
             "torchvision.models", "torchvision.transforms", "torchvision.transforms.functional", "wilds", "wilds.datasets",
             "wilds.datasets.camelyon17_dataset", "wilds.datasets.fmow_dataset"):
    sys.modules[name] = mock.MagicMock()
if "tqdm" not in sys.modules:
    try:
        import tqdm
    except ImportError:
        sys.modules["tqdm"] = types.SimpleNamespace(tqdm=lambda values, **_: values)
sys.argv = ["collect_results", "--input_dir", sys.argv[1]]
runpy.run_module("domainbed.scripts.collect_results", run_name="__main__")
"""
RULES = {"training-domain validation set": "training-domain validation", "leave-one-domain-out cross-validation":
         "leave-one-domain-out", "test-domain validation set (oracle)": "oracle"}


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout


def write_idx(path, values):
    """MNIST's format: a magic number with the number of axes, the axes, the bytes."""
    header = struct.pack(f">{1 + values.ndim}I", 0x800 + values.ndim, *values.shape)
    path.write_bytes(header + values.astype(np.uint8).tobytes())


def sweep(folder):
    """Runs on ColoredMNIST, of a few hundred random images in place of digits."""
    data, random = folder / "mnist", np.random.default_rng(0)
    data.mkdir()
    for part, count in (("train", 360), ("t10k", 60)):
        write_idx(data / f"{part}-images-idx3-ubyte", random.integers(0, 256, (count, 28, 28)))
        write_idx(data / f"{part}-labels-idx1-ubyte", random.integers(0, 10, count))
    run("dg", "sweep", "--dataset", "colored_mnist", "--data", data, "--algorithms", "erm,irm", "--trials", 2, "--hparams",
        2, "--steps", 4, "--eval-every", 2, "--out", folder / "sweep", "--quiet", "--set", "loader.batch=8")


def ours(folder):
    """{(rule, algorithm, environment or "Avg"): (mean, error)}"""
    found = {}
    for row in csv.DictReader(io.StringIO(run("dg", "table", folder, "--format", "csv"))):
        if row["selection"] in RULES.values():
            found[row["selection"], row["algorithm"].split(" ")[0], row["test_env"]] = (row["mean"], row["error"])
    return found


def printed(key, mean, error):
    return f"{float(mean):.1f}" if key[2] == "Avg" else f"{float(mean):.1f} +/- {float(error):.1f}"


def theirs(folder):
    """The same cells as collect_results prints them: columns two or more spaces apart."""
    result = subprocess.run([sys.executable, "-c", COLLECT, str(folder)], cwd=DOMAINBED, check=True, text=True,
                            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": DOMAINBED})
    found, rule = {}, None
    for line in result.stdout.splitlines():
        if line.startswith("--------"):
            match = re.search(r"Dataset: ColoredMNIST, model selection method: (.*)", line)
            rule, columns = RULES[match.group(1)] if match else None, None
        elif rule and line.strip():
            cells = [cell.strip() for cell in re.split(r"\s{2,}", line.strip().rstrip("\\").strip())]
            if columns is None:
                columns = cells[1:]
            else:
                for column, cell in zip(columns, cells[1:]):
                    found[rule, cells[0], column] = cell
    return found


def main():
    if not DOMAINBED:
        print("SPARSIGHT_DOMAINBED names no checkout of DomainBed")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sweep(folder)
        run("dg", "export", folder / "sweep", "--out", folder / "exported")
        mine, judge = ours(folder / "sweep"), theirs(folder / "exported")
    wrong = {key: (found, judge[key]) for key, found in mine.items() if judge.get(key) != printed(key, *found)}
    if wrong or len(mine) != len(judge):
        print(f"{len(mine)} cells here, {len(judge)} in DomainBed's tables; different: {wrong}")
        return 1
    print(f"{len(mine)} cells are equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
