"""Runs every verb with names, paths and values that would steer a terminal: none of their control characters may reach
stdout or stderr, and JSON stays JSON."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["SPARSIGHT_PROGRAM"]).resolve()
HOSTILE = "\x1b]0;x\x07\u009b31m\u202e"  # sets a title; a C1 control sequence; writes right to left
ESCAPED = r"\x1b]0;x\x07\u009b31m\u202e"
MARKDOWN = ESCAPED.replace("\\", "\\\\").replace("]", r"\]")
FORBIDDEN = [*(bytes([c]) for c in range(32) if c not in b"\n\t"), b"\x7f", "\u009b".encode(), "\u202e".encode()]
CONFIG = """
[run]
threads = 1
[data]
name = "folder"
root = "images"
[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]
[loader]
batch = 8
workers = 1
[model]
name = "vit"
size = "custom"
width = 16
depth = 1
heads = 1
patch = 8
[moe]
blocks = [-1]
experts = 2
[train]
epochs = 1
"""
failures = []


def fails(what, output):
    failures.append(f"{what}: {output!r}"[:2000])


def run(*arguments, shows=True, json_lines=None, environment=None, ok=None):
    """The output of the program. `shows`: a hostile name must be in it, escaped. `ok`: whether it must succeed."""
    result = subprocess.run([os.fsencode(PROGRAM), *(os.fsencode(word) for word in arguments)], capture_output=True,
                            env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, timeout=300)
    output, what = result.stdout + result.stderr, " ".join(arguments).encode("unicode_escape").decode()
    for bad in FORBIDDEN:
        if bad in output:
            fails(f"{what}: printed {bad!r} raw", output)
    if shows and not any(form.encode() in output for form in (ESCAPED, MARKDOWN, *(json.dumps(text)[1:-1] for text in (HOSTILE, ESCAPED)))):
        fails(f"{what}: does not show the name", output)
    if ok is not None and (result.returncode == 0) != ok:
        fails(f"{what}: exit code {result.returncode}", output)
    for text in {None: [], "lines": result.stdout.decode().splitlines(), "whole": [result.stdout.decode()]}[json_lines]:
        try:
            json.loads(text)
        except ValueError as error:
            fails(f"{what}: not JSON ({error})", text)
    return output


def write_tensors(path, name):
    """A safetensors file of one tensor."""
    header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))


def images():
    """Folders of images whose classes have hostile names, and a file that is no image."""
    small = [word for setting in ("side=16", "classes=2", "train=16", "validation=8", "test=8") for word in ("--set", setting)]
    run("data", "make", "images", *small, shows=False, ok=True)
    for split in pathlib.Path("images").iterdir():
        for i, folder in enumerate(sorted(split.iterdir())):
            folder.rename(split / f"{i}{HOSTILE}")
    pathlib.Path(f"{HOSTILE}.png").write_bytes(b"no image")


def data_verbs():
    run("data", "inspect", "images", ok=True)
    run("data", "verify", "images", shows=False, ok=True)
    run("data", "inspect", f"{HOSTILE}.png", ok=False)
    run("data", "verify", f"{HOSTILE}.png", ok=False)
    run("data", "inspect", HOSTILE, ok=False)
    run("data", "inspect", "glyphs", "--set", HOSTILE, ok=False)
    run("data", "make", f"made{HOSTILE}", "--set", f"{HOSTILE}=1", ok=False)
    run("data", "list", environment={"SPARSIGHT_DATA": HOSTILE}, ok=True)
    run("data", "fetch", "mnist", "--mirror", f"http://127.0.0.1:1/{HOSTILE}", "--to", f"to{HOSTILE}", ok=False)
    run("data", "fetch", "mnist", "--from", HOSTILE, "--to", "to", ok=False)
    run("data", "fetch", HOSTILE, ok=False)


def config_verbs():
    run("config", "show", "c.toml", "--set", f"data.root={HOSTILE}", ok=True)
    run("config", "show", "--set", f"data.{HOSTILE}=1", ok=False)
    run("config", "show", f"{HOSTILE}.toml", ok=False)
    run("config", "check", "c.toml", "--set", f"data.root={HOSTILE}", ok=False)
    run("config", "check", "c.toml", "--set", f"model.name={HOSTILE}", ok=False)
    run("config", "cost", "c.toml", "--flops", HOSTILE, ok=False)
    run("config", "cost", "c.toml", "--image", HOSTILE, ok=False)
    run("config", "docs", "--update", HOSTILE, ok=False)


def run_verbs(folder):
    run("train", "c.toml", "--out", folder, shows=False, ok=True)
    run("train", "c.toml", "--out", folder, ok=False)  # it exists
    write_tensors(pathlib.Path("w.safetensors"), HOSTILE)
    run("train", "c.toml", "--out", "other", "--init-from", "w.safetensors", ok=False)
    run("train", "c.toml", "--on-nan", HOSTILE, "--out", "other", ok=False)
    run("eval", folder, shows=False, ok=True)
    run("eval", folder, "--json", json_lines="lines", shows=False, ok=True)
    run("eval", folder, "--records", f"records{HOSTILE}", shows=False, ok=True)
    run("eval", "w.safetensors", shows=False, ok=False)
    image = str(next(pathlib.Path("images/test").rglob("*.png")))
    run("predict", folder, image, ok=True)
    run("predict", folder, image, "--json", json_lines="lines", ok=True)
    run("predict", folder, f"{HOSTILE}.png", ok=False)
    run("--log-json", "predict", folder, f"{HOSTILE}.png", ok=False)
    run("explain", folder, ok=True)
    run("explain", folder, "--json", json_lines="whole", ok=True)
    run("report", folder, ok=True)
    run("report", folder, "--baseline", folder, "--format", "table", ok=True)
    run("report", HOSTILE, ok=False)
    with open(f"{folder}/metrics.jsonl", "a") as log:  # names in a log of another's
        log.write(json.dumps({"kind": "eval", "step": 9, "split": HOSTILE, "weights": HOSTILE, "accuracy": 0.5, "loss": 1,
                              "layers": [{"layer": HOSTILE, "load": [1, 2], "experts": 2}]}) + "\n")
    for form in ("table", "markdown", "csv"):
        run("report", folder, "--format", form, ok=True)
    run("compare", f"records{HOSTILE}", f"records{HOSTILE}", shows=False, ok=True)
    run("compare", HOSTILE, HOSTILE, ok=False)


def other_verbs():
    write_tensors(pathlib.Path("t.safetensors"), HOSTILE)
    run("moe", "t.safetensors", ok=False)
    run("moe", HOSTILE, ok=False)
    run("reproduce", HOSTILE, ok=False)
    run("reproduce", "pmoe/fig4", "--data", HOSTILE, ok=False)
    run("reproduce", f"{HOSTILE}.toml", ok=False)
    for folder in (f"figure{HOSTILE}", os.fsdecode(b"figure\xff\xfe") + HOSTILE):  # not UTF-8
        run("reproduce", "pmoe/t8", "--scale", "smoke", "--jobs", "1", "--run", folder, ok=True)
    run("doctor", environment={"SPARSIGHT_DATA": HOSTILE}, ok=False)
    run("version", environment={"ATEN_CPU_CAPABILITY": HOSTILE, "SPARSIGHT_DATA": HOSTILE}, shows=False, ok=True)
    run("bench", HOSTILE, shows=False)
    run(HOSTILE, ok=False)
    run("version", HOSTILE, ok=False)
    run("version", f"--{HOSTILE}", ok=False)
    run("--log-json", "version", f"--{HOSTILE}", ok=False)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        pathlib.Path("c.toml").write_text(CONFIG)
        images()
        data_verbs()
        config_verbs()
        run_verbs(f"run{HOSTILE}")
        other_verbs()
        os.chdir("/")
    print("\n".join(failures) or "nothing steers the terminal")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
