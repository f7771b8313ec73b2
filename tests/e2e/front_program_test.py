"""The front program answers help, the version and usage errors without libtorch, in the full program's words, and hands
everything else on to it: the same process, arguments, descriptors and environment."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

FRONT = pathlib.Path(os.environ["SPARSIGHT_PROGRAM"]).resolve()
FULL = FRONT.parent.parent / "libexec/sparsight/sparsight"
ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN, IMAGE = ROOT / "tests/compat/0.1.0/run", ROOT / "tests/compat/0.1.0/image.png"
MAX_BYTES = 20_000_000  # of address space; libtorch needs more than 100 MB

# Each is a usage error of its own kind, found without a registry of the library.
ERRORS = """
versoin | data mak | frobnicate | --quite | version now | -- version | version -x | data | config
train | train --resume x a.toml | train --resume x --overwrite | train a.toml --on-nan | train a.toml --epochs 2
train --clip-norm=1 | predict | predict r | predict r i --top 0 | predict r i --top many | predict r i --weights int3
predict r i --checkpoint first | predict r i --jsno | eval r --split all | eval r --weights | report r --format pdf
report r --format csv --baseline q | reproduce show | reproduce pmoe/fig4 x | reproduce a.toml --scale smoke
reproduce pmoe/fig4 --plan --slurm x | reproduce x --tasks 3 | reproduce x --data /nosuch | moe f --grid 1
moe f --grid 1,2,3 | config cost --classes 1 | config cost --flops nosuch | cost --ranks 0 | cost --network x | data make d --layout x
explain r --examples 65 | --log-json train --nosuch | --quiet frob
"""

failures = 0


def check(right, what):
    global failures
    if not right:
        failures += 1
        print("FAILED:", what)


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


def answer(program, arguments, limit=None, **environment):
    """Exit code, standard output and error. Times in JSON lines are left out."""
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit,
                          env={**os.environ, **environment}, timeout=120)
    return done.returncode, done.stdout, re.sub(rb'"time":[0-9.]+', b"", done.stderr)


def verbs(alone, path=()):
    """Every verb and sub-verb that the program's own help lists."""
    yield path
    text = answer(alone, [*path, "--help"])[1].decode()
    for name in re.findall(r"^  ([\w-]+)", text.partition("Subcommands:\n")[2].partition("\n\n")[0], re.M):
        yield from verbs(alone, (*path, name))


def same(alone, arguments, code):
    front, full = answer(alone, arguments, little_memory), answer(FULL, arguments)
    check(front == full, f"{arguments}: {front} instead of {full}")
    check(front[0] == code, f"{arguments}: exit code {front[0]} instead of {code}")
    check(front[1 if code == 0 else 2] != b"", f"{arguments}: no answer")


def test_answers(alone):
    check("torch" not in subprocess.run(["ldd", FRONT], capture_output=True, text=True, check=True).stdout, "ldd")
    found = list(verbs(alone))
    check(len(found) > 20 and ("data", "make") in found, f"verbs: {found}")
    for path in found:
        same(alone, [*path, "--help"], 0)
        if path != ("bench",):  # hands unknown flags on to another program
            same(alone, [*path, "--name=x"], 2)
    for line in ERRORS.split("\n"):
        for error in filter(None, line.split(" | ")):
            same(alone, error.split(), 2)
    same(alone, [], 2)
    same(alone, ["--version"], 0)


def test_version():
    for environment in ({}, {"ATEN_CPU_CAPABILITY": "default"}, {"ATEN_CPU_CAPABILITY": "nosuch"}):
        front, full = answer(FRONT, ["version"], **environment), answer(FULL, ["version"], **environment)
        check(front == full and b"instruction set" in full[1], f"version with {environment}: {front} instead of {full}")


def test_work_needs_the_full_program(alone):
    code, out, err = answer(alone, ["--log-json", "data", "list"])
    check((code, out) == (1, b"") and err.count(b"\n") == 1 and b'"cannot start ' in err, f"alone: {err}")
    check(answer(FRONT, ["data", "list"]) == answer(FULL, ["data", "list"]), "data list")
    check(answer(FRONT, ["--log-json", "predict", "nosuch", "a.png"]) == answer(FULL, ["--log-json", "predict", "nosuch", "a.png"]),
          "an error of the work")


def test_process(folder):
    """Started through a link on the PATH, it keeps its process, name, arguments and standard input."""
    (folder / "sparsight").symlink_to(FRONT)
    command = ["sparsight", "predict", str(RUN), "-"]
    path = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    process = subprocess.Popen(command, env=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(f"{IMAGE}\n")
    process.stdin.flush()
    check("%" in process.stdout.readline(), "no prediction")
    here = pathlib.Path(f"/proc/{process.pid}")
    check((here / "exe").resolve() == FULL.resolve(), "another program runs")
    check((here / "comm").read_text() == "sparsight\n", "the process has another name")
    check((here / "cmdline").read_bytes().split(b"\0")[:-1] == [word.encode() for word in command], "other arguments")
    process.stdin.close()
    check(process.wait(timeout=60) == 0, "its exit code")


def test_malloc():
    """Its settings of malloc, unless the user has some."""
    for given, found in (None, b"glibc.malloc.hugetlb=1"), ("glibc.malloc.check=0", b"glibc.malloc.check=0"):
        environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
        if given:
            environment["GLIBC_TUNABLES"] = given
        process = subprocess.Popen([FRONT, "predict", RUN, "-"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        process.stdin.write(f"{IMAGE}\n")
        process.stdin.flush()
        check("%" in process.stdout.readline(), "no prediction")
        has = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        check(any(entry.startswith(b"GLIBC_TUNABLES=" + found) for entry in has), f"malloc with {given}: {has}")
        process.stdin.close()
        process.wait(timeout=60)


def test_scripts_name_the_front_program(folder):
    code, _, err = answer(FRONT, ["reproduce", "pmoe/table1", "--scale", "smoke", "--synthetic", "--run", folder / "table", "--slurm",
                                  folder / "array.sh"])
    check(code == 0, err)
    check(f"exec '{FRONT}'" in (folder / "array.sh").read_text(), "the script names another program")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        alone = folder / "alone/bin/sparsight"
        alone.parent.mkdir(parents=True)
        shutil.copy2(FRONT, alone)
        test_answers(alone)
        test_version()
        test_work_needs_the_full_program(alone)
        test_process(folder)
        test_malloc()
        test_scripts_name_the_front_program(folder)
    sys.exit(failures > 0)


main()
