"""sparsight-run as a user starts it: its output, its errors, its processor time from start to answer and its memory."""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["BUILD"])
RUN = BUILD / "runtime/sparsight-run"
IMAGE = "tests/compat/0.1.0/image.png"
MAX_SECONDS = 0.015
MAX_MEMORY = 12 << 20  # besides the weights

if not RUN.exists():
    print("this build has no sparsight-run")
    sys.exit(77)
folder = tempfile.TemporaryDirectory()
MODEL = pathlib.Path(folder.name) / "vit.sparsight"
subprocess.run([BUILD / "tests/sparsight_write_small_vit", MODEL], check=True)


def run(*arguments, code=0, **options):
    done = subprocess.run([RUN, *map(str, arguments)], capture_output=True, text=True, **options)
    assert done.returncode == code, (arguments, done)
    return done


def fails(code, words, *arguments):
    """One line on stderr, nothing on stdout."""
    done = run(*arguments, code=code)
    lines = done.stderr.splitlines()
    assert done.stdout == "" and lines and all(line.startswith("error: ") for line in lines), done
    assert words in lines[0] and (code == 1 or len(lines) == 1), done


# What it says. Each image of a per-image router uses two experts of each layer, with all of its tokens.
text = run(MODEL, IMAGE, "--top", "3", "--routing").stdout.splitlines()
assert re.fullmatch(re.escape(IMAGE) + r": class \d+ \d+\.\d %(, class \d+ \d+\.\d %){2}", text[0]), text
assert len(text) == 3 and re.fullmatch(r"  blocks\.4\.mlp: expert \d 50\.0 %, expert \d 50\.0 %", text[1]), text
assert run(MODEL, IMAGE, "--top", "3").stdout.splitlines() == text[:1]

lines = run(MODEL, IMAGE, IMAGE, "--json", "--routing", "--top", "100").stdout.splitlines()
assert len(lines) == 2 and lines[0] == lines[1]
answer = json.loads(lines[0])
assert len(answer["classes"]) == 12 and abs(sum(c["probability"] for c in answer["classes"]) - 1) < 1e-5
assert answer["class"] == answer["classes"][0]["class"] and f'{answer["class"]} ' in text[0]
routing = answer["routing"]["blocks.5.mlp"]
assert len(routing["chosen"]) == routing["tokens_per_image"] == 65 and routing["grid"] == [8, 8]
assert all(token == routing["chosen"][0] for token in routing["chosen"])
chosen = routing["chosen"][0]
assert {e for e, _ in chosen} == {s["expert"] for s in answer["experts"]["blocks.5.mlp"]}
assert abs(sum(gate for _, gate in chosen) - 1) < 1e-6
assert run(MODEL, IMAGE, "--keep-experts", "0", "--json", "--routing", "--top", "100").stdout == lines[0] + "\n"
for _ in range(2):
    assert run(MODEL, IMAGE, "--pack-cache", "--json", "--routing", "--top", "100").stdout == lines[0] + "\n"
packed, = MODEL.parent.glob("vit.sparsight.*.packed")
assert packed.stat().st_size > MODEL.stat().st_size / 2
packed.unlink()
packed.mkdir()  # and so it cannot be written
done = run(MODEL, IMAGE, "--pack-cache", "--json", "--routing", "--top", "100")
assert done.stdout == lines[0] + "\n" and done.stderr.count("\n") == 1 and "cannot be kept beside" in done.stderr, done
packed.rmdir()
assert run(MODEL, IMAGE, "--threads", "3", "--json", "--routing", "--top", "100").stdout == lines[0] + "\n"

# What it refuses.
fails(2, "--threads", MODEL, IMAGE, "--threads", "0")
fails(2, "required")
fails(2, "required", MODEL)
fails(2, "--unknown", MODEL, IMAGE, "--unknown")
fails(1, "nothing: No such file", "nothing", IMAGE)
fails(1, "README.md is not a frozen model", "README.md", IMAGE)
fails(1, "README.md: the image is of an unknown kind", MODEL, "README.md")
done = run(MODEL, "nothing.png", IMAGE, code=1)
assert done.stdout.startswith(IMAGE) and "1 of 2 images could not be processed" in done.stderr, done
name = pathlib.Path(folder.name) / "a\x1b[31m\nb.png"
name.write_bytes(pathlib.Path(IMAGE).read_bytes())
assert "a\\x1b[31m\\x0ab.png: class" in run(MODEL, name).stdout
with open("/dev/full", "w") as full:
    done = subprocess.run([RUN, MODEL, IMAGE], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "cannot write to standard output" in done.stderr, done
assert run("--version").stdout.startswith("sparsight-run 0.")
assert "--routing" in run("--help").stdout

# The shortest of 30 runs, in processor time, which other programs on the machine change least.
seconds = []
for _ in range(30):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(MODEL, IMAGE, "--threads", "1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

# The peak while it runs: the kernel's counter of the last look before the end.
images = 300
process = subprocess.Popen([RUN, MODEL, *[IMAGE] * images, "--threads", "1"], stdout=subprocess.PIPE)
peak = 0
for _ in range(images):
    process.stdout.readline()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s*(\d+) kB", status)  # none once it has ended
    peak = max(peak, int(found[1]) << 10) if found else peak
process.communicate()
assert process.returncode == 0 and peak > 0
# An expert has 64 x 256 + 256 x 64 weights and 256 + 64 biases in each of two layers; a column is whole pages.
COLUMN = -(-2 * 4 * (2 * 64 * 256 + 256 + 64) // 4096) * 4096
used = {share["expert"] for layer in answer["experts"].values() for share in layer}
weights = MODEL.stat().st_size - (10 - len(used)) * COLUMN
print(f"start to answer: {1e3 * min(seconds):.1f} ms of processor time; peak memory: {peak / 2**20:.1f} MiB, of which the "
      f"weights of {len(used)} of 10 experts and the dense part are {weights / 2**20:.1f}")
if "SPARSIGHT_SANITIZE:STRING=\n" in (BUILD / "CMakeCache.txt").read_text():
    assert min(seconds) <= MAX_SECONDS, seconds
    assert peak <= weights + MAX_MEMORY, (peak, weights)
