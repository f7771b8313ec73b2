"""Times frozen models in this library's runtime and ONNX files of the same models in others: fp32, bf16 and int8, dense
and with one router that gives each image one of ten experts. Measures starts, memory, sizes of libraries, and experts
that are read on demand. Prints tables (mobile_table.py) and writes what was measured as JSON.

Each runtime runs in a process of its own, one at a time, on the same random weights and images; its logits are compared
with ours before anything is timed. Rounds in which all run in turn, each round in another order. Runtimes whose package
is missing are left out with a line. Use, with an interpreter that has NumPy and the packages to compare:
  mobile.py --build build/release [--quick] [--size 12x384] [--routing dense] [--batch 1,32] [--threads 1,2]
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import random
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

import rounds
import runtimes
from mobile_models import ROOT, Models, multiply_adds, write_png
from mobile_table import print_tables
from turns import Process, time_in_turn

KEPT = {"all": None, "3": 3, "1": 1}  # columns of experts that stay in memory
FULL = dict(
    size=["12x384", "12x192", "6x64"],
    batch=[1, 32],
    threads=[n for n in (1, 2, 4) if n <= (os.cpu_count() or 1)],
    rounds=15,
    turn=0.2,
    images=1000,
    starts=9,
    side=224,
    patch=32,
    classes=1000,
    types=list(runtimes.TOLERANCE),
)
QUICK = dict(FULL, size=["12x192"], batch=[1, 8], threads=[1], rounds=6, turn=0.02, images=100, starts=3)


def parse_options(arguments):
    texts, numbers = lambda text: text.split(","), lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the build")
    parser.add_argument("--quick", action="store_true", help="one small model and few rounds: within three minutes")
    parser.add_argument("--size", type=texts, help="depth x width")
    parser.add_argument("--routing", type=texts, default=["dense", "mobile"])
    parser.add_argument("--types", type=texts)
    for name in ("--batch", "--threads"):
        parser.add_argument(name, type=numbers)
    for name in ("--rounds", "--images", "--starts", "--side", "--patch", "--classes"):
        parser.add_argument(name, type=int)
    parser.add_argument("--turn", type=float, help="seconds that a runtime runs at a time")
    parser.add_argument("--experts", type=int, default=10)
    parser.add_argument("--engines", type=texts, help="others to compare with; '' for none")
    parser.add_argument(
        "--json", type=pathlib.Path, help="file of results (default: bench/results/mobile.json, with --quick none)"
    )
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for what, given, known in (
        ("--routing", options.routing, ["dense", "mobile"]),
        ("--types", options.types, FULL["types"]),
        ("--engines", options.engines or [], [*runtimes.MODULES, ""]),
    ):
        for name in given:
            if name not in known:
                parser.error(f"{what} {name} is none of {', '.join(known)}")
    for size in options.size:
        if not re.fullmatch(r"[1-9]\d*x[1-9]\d*", size):
            parser.error(f"--size {size} is no DEPTHxWIDTH, such as 12x192")
    if options.json is None and not options.quick:
        options.json = ROOT / "bench/results/mobile.json"
    return options


class Bench:
    def __init__(self, options, folder):
        self.options, self.models = options, Models(options, folder)
        self.told, self.warnings = set(), set()
        wanted = runtimes.MODULES if options.engines is None else [name for name in options.engines if name]
        self.others = [name for name in wanted if importlib.util.find_spec(runtimes.MODULES[name])]
        absent = [f"{name} ({runtimes.MODULES[name]})" for name in wanted if name not in self.others]
        if absent:
            self.tell(f"not installed: {', '.join(absent)}")

    def tell(self, text):
        """A line, once."""
        if text not in self.told:
            self.told.add(text)
            print(f"# {text}", file=sys.stderr, flush=True)

    def process(self, name):
        return Process([sys.executable, runtimes.__file__, name])

    def start_processes(self, size, routing, batch, threads):
        """(those that run the case, by (runtime, type); errors of their logits)."""
        running, errors = {}, {}
        for name in ["ours", *self.others]:
            for type_name in self.options.types:
                process = self.process(name)
                said = process.ask(json.dumps(self.models.case(size, routing, type_name, batch, threads)))
                process.pause()
                if "skipped" in said:
                    self.tell(f"{name}: {said['skipped']}")
                    process.close()
                else:
                    running[name, type_name], errors[name, type_name] = process, said["error"]
        return running, errors

    def time_case(self, size, routing, batch, threads):
        """Rows of the table of times, one for each type."""
        running, errors = self.start_processes(size, routing, batch, threads)
        seconds = lambda name, runs: running[name].ask(json.dumps({"runs": runs}))["seconds"]  # noqa: E731
        times, warning = time_in_turn(running, self.options.rounds, seconds, self.options.turn)
        self.warnings.add(warning)
        for process in running.values():
            process.close()
        depth, width = (int(part) for part in size.split("x"))
        rows = []
        for type_name in self.options.types:
            own = {name: times[name, kind] for name, kind in times if kind == type_name}
            row = dict(
                size=size,
                routing=routing,
                batch=batch,
                threads=threads,
                type=type_name,
                operations=2 * batch * multiply_adds(self.options, depth, width, routing),
                seconds={name: interval(values) for name, values in own.items()},
                ratios={
                    name: interval([a / b for a, b in zip(own["ours"], values)])
                    for name, values in own.items()
                    if name != "ours" and "ours" in own
                },
                errors={name: errors[name, type_name] for name in own},
            )
            rows.append(row)
        return rows

    def measure_starts(self, size):
        """From the start of a process to the first answer, and what the process is then."""
        case = self.models.case(size, "dense", "fp32", 1, 1)
        folder = pathlib.Path(case["folder"])
        (folder / "case.json").write_text(json.dumps(case))
        write_png(folder / "image.png", self.options.side)
        once = lambda name: [sys.executable, runtimes.__file__, name, "--once", str(folder / "case.json")]  # noqa: E731
        program = [str(self.options.build / "runtime/sparsight-run"), case["frozen"], "--threads", "1", "--json"]
        commands = {"none": once("none"), "sparsight-run": program + [str(folder / "image.png")] * 50}
        commands |= {name: once(name) for name in ["ours", *self.others]}
        found, times = {}, {name: [] for name in commands}
        for number in range(self.options.starts + 1):  # the first reads from the disk and converts
            for name in random.Random(number).sample(sorted(commands), len(commands)):
                if name in times:
                    seconds, found[name] = first_line(commands[name])
                    if found[name] is None:
                        del times[name], found[name]
                    elif number > 0:
                        times[name].append(seconds)
        rows, plain = [], found["none"]["libraries"]
        for name in times:
            said = found[name]
            loaded = {path: size for path, size in said.get("libraries", {}).items() if path not in plain}
            added = [a - b for a, b in zip(times[name], times["none"])]
            rows.append(
                dict(
                    name=name,
                    size=size,
                    seconds=interval(times[name]),
                    added_seconds=interval(added),
                    peak_bytes=said["peak_bytes"],
                    pss_bytes=said.get("pss_bytes"),
                    library_bytes=sum(loaded.values()) or None,
                    libraries=len(loaded),
                )
            )
        program_bytes = os.path.getsize(program[0])
        for row in rows:
            if row["name"] == "sparsight-run":
                row.update(library_bytes=program_bytes, libraries=0, added_seconds=None)
        return rows

    def measure_demand(self, size):
        """Many different images, one at a time, with all columns of experts in memory and with few of them."""
        processes, parts = {}, 10
        for name, kept in KEPT.items():
            process = processes[name] = self.process("ours")
            said = process.ask(
                json.dumps(self.models.case(size, "mobile", "fp32", 1, 1, kept=kept, images=self.options.images))
            )
            if "skipped" in said:
                sys.exit(f"error: ours does not run: {said['skipped']}")
            process.pause()
        times, watch = {name: [] for name in KEPT}, rounds.Interference([process.pid for process in processes.values()])
        for number in range(parts + 1):  # the first warms up
            for name in random.Random(number).sample(sorted(KEPT), len(KEPT)):
                processes[name].resume()
                seconds = processes[name].ask(json.dumps({"runs": max(1, self.options.images // parts)}))["seconds"]
                processes[name].pause()
                if number > 0:
                    times[name].append(seconds)
        self.warnings.add(watch.warning())
        rows = []
        for name, process in processes.items():
            process.resume()
            rows.append(
                dict(
                    size=size,
                    kept=name,
                    seconds=interval(times[name]),
                    images=self.options.images,
                    ratio=interval([a / b for a, b in zip(times[name], times["all"])]),
                    **process.ask(json.dumps({"memory": True})),
                )
            )
            process.close()
        case = self.models.case(size, "mobile", "fp32", 1, 1)
        used = experts_used(case, self.options.images)
        return [dict(row, file_bytes=os.path.getsize(case["frozen"]), experts_used=used) for row in rows]


def interval(values):
    median, low, high, coverage = rounds.median_interval(values)
    return dict(median=median, low=low, high=high, coverage=coverage)


def experts_used(case, count):
    """How many of the images chose each expert, by the frozen model's own routing."""
    sys.path.insert(0, case["package"])
    import sparsight_infer as infer

    model, used = infer.open(case["frozen"]), {}
    for pattern in runtimes.make_patterns(count, case["shape"][0], seed=3):
        model.logits(runtimes.enlarge(pattern[None], case["shape"]))
        expert = str(model.routing()[0].expert[0])
        used[expert] = used.get(expert, 0) + 1
    return used


def first_line(command):
    """(seconds to the first line, what it says with the peak of memory then), or (0, None) where there is none."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
        status = re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{process.pid}/status").read_text())
        process.stdout.read()
        _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode != 0 or not line:
        return 0, None
    said = json.loads(line)
    if "peak_bytes" not in said:  # sparsight-run, which may have answered its other images too by then, and ended
        said = {"peak_bytes": (int(status[1]) if status else usage.ru_maxrss) << 10}
    return seconds, said


def measure_peaks(options):
    """{threads: {type: operations per second}}, as `sparsight_bench models` measures them; {} without that program."""
    program, peaks = options.build / "bench/sparsight_bench", {}
    if not program.exists():
        return peaks
    for threads in options.threads:
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.run(
                [
                    program,
                    "models",
                    "--worker",
                    folder,
                    "--size",
                    "6x64",
                    "--routing",
                    "dense",
                    "--batch",
                    "1",
                    "--threads",
                    str(threads),
                ],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            ).stdout
        rates = {kind: 1e9 * float(rate) for rate, kind in re.findall(r"(\d+) G\w+/s (fp32|bf16|int8)", said)}
        if "fp32" not in rates:
            return {}
        fp32, bf16 = rates["fp32"], rates.get("bf16", 0)
        bf16_or_fp32 = max(bf16, fp32)  # as bench/limits/peak.h has it
        peaks[str(threads)] = {
            "fp32": max(fp32, bf16 / 6),
            "bf16": bf16_or_fp32,
            "int8": max(rates.get("int8", 0), bf16_or_fp32),
        }
    return peaks


def describe_machine(bench):
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    case = bench.models.case(bench.options.size[0], bench.options.routing[0], "fp32", 1, 1)
    sys.path.insert(0, case["package"])
    import sparsight_infer as infer

    level = infer.open(case["frozen"])._info.instruction_set.decode()
    return f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores, instruction set {level}"


def describe_environment():
    versions = {}
    for module in runtimes.MODULES.values():
        if importlib.util.find_spec(module):
            name = module.replace("_", "-")
            versions[name] = importlib.metadata.version(name)
    started = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return dict(
        started=started, command=sys.argv, python=platform.python_version(), numpy=np.__version__, versions=versions
    )


def main():
    options = parse_options(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        settings = {
            key: str(value) if isinstance(value, pathlib.Path) else value for key, value in vars(options).items()
        }
        commit = os.environ.get("SPARSIGHT_COMMIT", "")
        results = dict(
            benchmark="mobile",
            machine=describe_machine(bench),
            environment=describe_environment(),
            commit=commit,
            settings=settings,
            peaks=measure_peaks(options),
            rows=[],
            starts=[],
            demand=[],
        )
        for size in options.size:
            for routing in options.routing:
                for batch in options.batch:
                    for threads in options.threads:
                        results["rows"] += bench.time_case(size, routing, batch, threads)
                        bench.tell(f"{size}, {routing}, batch {batch}, {threads} threads: done")
        results["starts"] = bench.measure_starts(options.size[0])
        if "mobile" in options.routing:
            results["demand"] = bench.measure_demand(options.size[0])
        results["warnings"] = sorted(bench.warnings - {""})
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    print_tables(results)


if __name__ == "__main__":
    main()
