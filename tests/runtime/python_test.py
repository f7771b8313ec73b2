"""The Python package sparsight_infer: its wheel is built, installed into an empty environment with NumPy alone, and used
on a generated model. Its answers are those of sparsight-run."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
IMAGE = pathlib.Path("tests/compat/0.1.0/image.png").resolve()

USE = r'''
import importlib.util, json, math, pathlib, sys, threading
import numpy
import sparsight_infer as infer

assert pathlib.Path(infer.__file__).is_relative_to(sys.prefix), infer.__file__
assert importlib.util.find_spec("torch") is None
path, image, want = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
model = infer.open(path)
assert model.shape == (3, 32, 32) and model.classes == [f"class {k}" for k in range(12)] and model.weight_bytes > 2e6

guesses = model.predict(image, top=3)
assert [g.name for g in guesses] == [c["class"] for c in want["classes"]][:3]
assert all(abs(g.probability - c["probability"]) < 1e-6 for g, c in zip(guesses, want["classes"]))
assert model.predict(pathlib.Path(image).read_bytes(), top=3) == guesses == model.predict(pathlib.Path(image), top=3)
routing = model.routing()
assert [r.layer for r in routing] == list(want["experts"]) and routing[0].grid == (8, 8)
for r in routing:
    assert r.experts_used() == {s["expert"]: s["share"] for s in want["experts"][r.layer]}
    assert len(r.token) == 2 * 65 and r.kept.all() and abs(r.gate[:2].sum() - 1) < 1e-6

# Pixels and bytes: an image of the model's own size is resized and cropped, so only a constant one stays the same.
grey = numpy.full((32, 32, 3), 128, numpy.uint8)
pixels = numpy.full((3, 32, 32), 128 / 255, numpy.float32)
assert model.predict(grey) == model.predict(grey[:, :, 0]) == model.predict(pixels) == model.predict(grey[::2])
batch = numpy.stack([pixels, numpy.zeros_like(pixels)])
logits = model.logits(batch)
assert logits.shape == (2, 12) and numpy.allclose(logits[0], model.logits(pixels), atol=1e-5)
assert numpy.allclose(model.logits(batch.astype("float64")[:, :, ::-1]), logits, atol=1e-5)
exps = numpy.exp(logits.astype("float64"))
assert numpy.allclose(model.probabilities(batch), exps / exps.sum(1, keepdims=True), atol=1e-6)
assert infer.open(pathlib.Path(path).read_bytes(), threads=2).logits(batch).tolist() == logits.tolist()


def refused(kind, call, words):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


assert infer.open(path, kept_experts=1).logits(batch).tolist() == logits.tolist()
for kept in (None, None, 1):
    packed = infer.open(path, kept_experts=kept, pack_cache=True)
    assert packed.logits(batch).tolist() == logits.tolist()
assert packed.pack_cache and not model.pack_cache
refused(ValueError, lambda: infer.open(b"text", pack_cache=True), "pack_cache")
refused(infer.Error, lambda: infer.open(path, kept_experts=-3), "kept_experts is -3")
refused(ValueError, lambda: infer.open(b"text", kept_experts=1), "kept_experts")
refused(infer.Error, lambda: infer.open("nothing"), "No such file")
refused(infer.Error, lambda: infer.open(b"text"), "is not a frozen model")
refused(infer.Error, lambda: infer.open(path, threads=0), "0 threads")
refused(infer.Error, lambda: model.predict(b"text"), "is of an unknown kind")
refused(infer.Error, lambda: model.logits(pixels * math.nan), "not finite")
refused(infer.Error, lambda: model.predict(numpy.zeros((4, 4, 2), numpy.uint8)), "2 channels")
refused(ValueError, lambda: model.logits(pixels[:2]), "[1, 2, 32, 32]")
refused(ValueError, lambda: model.logits(batch[:0]), "[0, 3, 32, 32]")
refused(ValueError, lambda: model.predict(numpy.zeros(4, numpy.uint8)), "[4]")
refused(FileNotFoundError, lambda: model.predict("nothing.png"), "nothing.png")

seen = []
model.on_routing(lambda routing: seen.append(routing.layer))
model.logits(pixels)
assert seen == list(want["experts"])
model.on_routing(lambda routing: 1 // 0)
refused(ZeroDivisionError, lambda: model.logits(pixels), "division")
model.on_routing(None)
model.logits(pixels)
assert len(seen) == 2

# Each thread has a session: its routing is that of its own image.
answers = {}
def work(number):
    mine = numpy.full((3, 32, 32), number / 8, numpy.float32)
    for _ in range(20):
        answers[number] = model.logits(mine).tolist(), model.routing()[1].gate[0]
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for number in range(8):
    mine = numpy.full((3, 32, 32), number / 8, numpy.float32)
    assert answers[number] == (model.logits(mine).tolist(), model.routing()[1].gate[0])
print("used", infer.__version__)
'''


def skip(reason):
    print(reason)
    sys.exit(77)


def pip(python, *arguments):
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


cache = (BUILD / "CMakeCache.txt").read_text()
if not (BUILD / "runtime/sparsight-run").exists() or "SPARSIGHT_SANITIZE:STRING=\n" not in cache:
    skip("this build has no libsparsight_infer, or one with sanitizers")
if importlib.util.find_spec("scikit_build_core") is None:
    skip("scikit-build-core is not installed")

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    # Beside the tests' build, with its compiler: ccache knows the objects then.
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]
    built = pip(sys.executable, "wheel", "--no-build-isolation", "--no-deps", "-w", folder,
                "-C", f"build-dir={BUILD.parent / 'infer_wheel'}", "-C", f"cmake.define.CMAKE_CXX_COMPILER={compiler}",
                "python/infer")
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("sparsight_infer-*-py3-none-linux_*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size} bytes")

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    if pip(python, "install", "numpy").returncode != 0:
        skip("NumPy cannot be installed into an empty environment")
    installed = pip(python, "install", "--no-index", wheel)
    assert installed.returncode == 0, installed.stdout + installed.stderr

    model = folder / "vit.sparsight"
    subprocess.run([BUILD / "tests/sparsight_write_small_vit", model], check=True)
    want = subprocess.run([BUILD / "runtime/sparsight-run", model, IMAGE, "--json", "--top", "12"], check=True,
                          capture_output=True, text=True).stdout
    (folder / "use.py").write_text(USE)
    subprocess.run([python, folder / "use.py", model, IMAGE, json.dumps(json.loads(want))], check=True, cwd=folder)
