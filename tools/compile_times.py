"""Measures compile times (clean build, edit of one file, seconds per file) and writes docs/benchmarks/compile_times.md.

Usage: compile_times.py PYTHON_WITH_TORCH [JOBS]     (takes as long as a clean build without ccache)
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "timing"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SLOWEST = 15


def ninja(jobs):
    start = time.monotonic()
    subprocess.run(["ninja", "-C", FOLDER, f"-j{jobs}"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "CCACHE_DISABLE": "1"})
    return time.monotonic() - start


def seconds_per_output():
    """{object file: seconds} of its last build (ninja's log is in milliseconds)."""
    seconds = {}
    for line in (FOLDER / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def short_name(output):
    group = re.search(r"/Unity/unity_(.*)_cxx\.cxx\.o$", output)
    if group:
        return f"group {group[1].removeprefix('sparsight_')}"
    return output.replace("CMakeFiles/", "").replace("sparsight.dir/", "").replace("sparsight_tests.dir/", "").removesuffix(".o")


def edited(path, jobs):
    """The time to rebuild everything after `path` changed."""
    os.utime(ROOT / path)
    return ninja(jobs)


def main():
    python, jobs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    shutil.rmtree(FOLDER, ignore_errors=True)
    subprocess.run(["cmake", "--preset", "release", "-B", FOLDER, f"-DSPARSIGHT_PYTHON={python}"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    clean = ninja(jobs)
    times = seconds_per_output()
    light, torch = "sparsight/core/options.cpp", "sparsight/models/vit.cpp"
    rows = [("clean build (no ccache)", clean), (f"edit of {light}", edited(light, jobs)),
            (f"edit of {torch} (in a unity group)", edited(torch, jobs))]
    shutil.rmtree(FOLDER)

    objects = sorted(((s, short_name(o)) for o, s in times.items() if o.endswith((".o", ".gch"))), reverse=True)
    text = [f"{jobs} jobs, {platform.machine()}, {compiler()}:", "", "| what | seconds |", "|---|---|"]
    text += [f"| {name} | {seconds:.0f} |" for name, seconds in rows]
    text += ["", f"The slowest of {len(objects)} compiled files (seconds each, {jobs} at once):", "", "| file | seconds |", "|---|---|"]
    text += [f"| {name} | {seconds:.1f} |" for seconds, name in objects[:SLOWEST]]
    rest = [seconds for seconds, _ in objects[SLOWEST:]]
    if rest:
        text.append(f"| the other {len(rest)}, on average | {sum(rest) / len(rest):.1f} |")
    page = ROOT / "docs" / "benchmarks" / "compile_times.md"
    before, after = page.read_text().split(BEGIN)[0], page.read_text().split(END)[1]
    page.write_text(before + BEGIN + "\n" + "\n".join(text) + "\n" + END + after)
    print("\n".join(text[:7]))


def compiler():
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


if __name__ == "__main__":
    main()
