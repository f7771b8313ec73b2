"""Hostile files through the program: each ends with exit code 1 or 2 and one line, within bounded memory and time."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ["SPARSIGHT_PROGRAM"]
MAX_BYTES = 1 << 30  # of memory
MAX_SECONDS = 60  # on a busy machine
DEEP = "[" * 100_000 + "]" * 100_000

CONFIG = """
[data]
name = "glyphs"
classes = 4
side = 16
channels = 1
train = 32
validation = 16
test = 16
[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]
[loader]
batch = 16
[model]
name = "vit"
width = 16
depth = 1
heads = 2
patch = 8
[moe]
blocks = [0]
experts = 2
[train]
epochs = 1
"""

failures = []


def run(*arguments):
    """Exit code, standard output and error, and the peak memory of the program in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        child = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - start > MAX_SECONDS:
                child.kill()
                os.wait4(child.pid, 0)
                return None, "", "", 0
            time.sleep(0.02)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        return child.returncode, out.read().decode(), err.read().decode(), usage.ru_maxrss * 1024


def refused(*arguments, says="", code=(1, 2), lines=1):
    exit_code, _, err, peak = run(*arguments)
    wrong = []
    if exit_code is None:
        wrong.append(f"ran for more than {MAX_SECONDS} s")
    elif exit_code not in code:
        wrong.append(f"exit code {exit_code}")
    if err.count("\n") != lines or says not in err:
        wrong.append(f"said {err[:500]!r}, expected {lines} lines with {says!r}")
    if peak > MAX_BYTES:
        wrong.append(f"took {peak >> 20} MB")
    if wrong:
        failures.append(f"{' '.join(map(str, arguments))}: {'; '.join(wrong)}")


def with_state(path, state):
    """The checkpoint at `path` with another text as its state (and without checksums, as older versions wrote it)."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header["__metadata__"] = {key: value for key, value in header["__metadata__"].items() if not key.startswith("xxh3")}
    header["__metadata__"]["state"] = state
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length:]


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "config.toml").write_text(CONFIG)
    trained = folder / "run"
    code, _, err, _ = run("train", folder / "config.toml", "--out", trained, "--quiet")
    assert code == 0, err
    image = folder / "image.png"
    code, _, err, _ = run("data", "make", folder / "made", "--set", "train=4", "--set", "validation=4", "--set", "test=4")
    assert code == 0, err
    image = next((folder / "made" / "test").rglob("*.png"))
    fifo = folder / "fifo.png"
    os.mkfifo(fifo)

    for name in ("/dev/zero", folder, fifo):
        refused("config", "show", name)
        if name != folder:  # a folder means the images in it
            refused("predict", trained, name, lines=2)  # the image, and how many failed
        refused("moe", name)
        refused("predict", name, image)
    (folder / "deep.toml").write_text("[model]\nname = " + DEEP + "\n")
    refused("config", "show", folder / "deep.toml", code=(2,))
    (folder / "keys.toml").write_text("a" + ".a" * 200_000 + " = 1\n")
    refused("config", "show", folder / "keys.toml", code=(2,))

    for checkpoint in ("best", "last"):
        path = trained / "checkpoints" / f"{checkpoint}.safetensors"
        if not path.exists():
            continue
        deep = folder / f"{checkpoint}.safetensors"
        deep.write_bytes(with_state(path, DEEP))
        refused("predict", deep, image)
    huge = folder / "huge.safetensors"
    huge.write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
    refused("predict", huge, image)

    refused("attack", huge)
    refused("attack", fifo)
    refused("attack", trained, "--eps", "9" * 100_000, code=(2,))
    attacked = folder / "attacked"
    attack = ("attack", trained, "--attack", "fgsm", "--images", "4", "--out", attacked)
    code, _, err, _ = run(*attack, "--quiet")
    assert code == 0, err
    for name in ("result.json", "attack.json"):
        whole = (attacked / name).read_bytes()
        for damage in (DEEP.encode(), whole[:100], b"", b'{"format": "sparsight-attack", "version": 1e300}'):
            (attacked / name).write_bytes(damage)
            refused(*attack)
        (attacked / name).write_bytes(whole)

    (trained / "explain").mkdir(exist_ok=True)
    (trained / "explain" / "explain.json").write_text(DEEP)
    with open(trained / "metrics.jsonl", "a") as log:
        log.write(DEEP + "\n")
        log.write('{"kind": "note", "text": "' + "x" * (100 << 20) + '"}\n')
    code, _, err, peak = run("report", trained)  # leaves out what it cannot read
    if code != 0 or peak > MAX_BYTES or "could not be read" not in (trained / "report.html").read_text():
        failures.append(f"report: exit code {code}, {peak >> 20} MB, {err[:300]!r}")

if failures:
    sys.exit("\n".join(failures))
print("hostile files end in one line within 1 GB")
