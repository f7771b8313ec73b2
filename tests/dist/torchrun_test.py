"""Ranks that torchrun starts have the bits of one process, and its answers. Skipped where torchrun or the build's gloo is missing."""
import os
import pathlib
import subprocess
import sys
import tempfile

from collectives import build_has_gloo

PROGRAM = pathlib.Path(os.environ["SPARSIGHT_PROGRAM"]).resolve()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
SETTINGS = {"data.name": "glyphs", "data.classes": 4, "data.side": 16, "data.train": 256, "data.validation": 64,
            "data.test": 64, "model.name": "vit", "model.width": 32, "model.depth": 2, "model.heads": 2,
            "model.patch": 4, "moe.blocks": "[-1]", "moe.experts": 4, "loader.batch": 32, "train.epochs": 1,
            "run.threads": 1}


def train(launcher, out, accumulate, folder):
    config = folder / "config.toml"
    config.write_text("")
    settings = {**SETTINGS, "train.accumulate": accumulate}
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}
    command = [*launcher, str(PROGRAM), "train", str(config), "--out", str(folder / out), *sets]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return (folder / out / "checkpoints/last.safetensors").read_bytes()


def predict(launcher, folder):
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}
    command = [*launcher, str(PROGRAM), "predict", str(folder / "one"), str(folder / "images"), "--json"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def tensors(content):
    """What follows the header, which has the configuration."""
    return content[8 + int.from_bytes(content[:8], "little"):]


def main():
    if not build_has_gloo(PROGRAM):
        return 77
    if subprocess.run([*TORCHRUN, "--help"], capture_output=True).returncode != 0:
        print("torchrun is missing")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        one = train([], "one", 2, folder)
        two = train([*TORCHRUN, "--no-python", "--nproc-per-node", "2", "--master-port", "29613"], "two", 1, folder)
        assert tensors(one) == tensors(two), "two ranks have other bits than one process"
        other = train([], "other", 1, folder)
        assert tensors(one) != tensors(other), "the comparison cannot fail"
        subprocess.run([str(PROGRAM), "data", "make", str(folder / "images"), "--set", "side=16", "--set", "classes=4",
                        "--set", "train=130", "--set", "validation=8", "--set", "test=8", "--quiet"], check=True)
        three = [*TORCHRUN, "--no-python", "--nproc-per-node", "3", "--master-port", "29614"]
        assert predict(three, folder) == predict([], folder), "three ranks predict something else than one process"
    return 0


if __name__ == "__main__":
    sys.exit(main())
