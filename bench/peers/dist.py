"""Times training steps on several ranks, processes of one thread each on this machine: this library, PyTorch's
DistributedDataParallel on gloo, and one process of as many threads that takes the same batches one after the other. All
run in turn, in rounds of random order. Use, with an interpreter that has torch:
  dist.py --build build/release [--ranks 2] [--size 12x192] [--routing dense,top1] [--batch 16] [--rounds 9]
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

import rounds
from turns import Process, time_in_turn

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parse_options():
    texts, numbers = lambda text: text.split(","), lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the build")
    parser.add_argument("--ranks", type=numbers, default=[2])
    parser.add_argument("--size", type=texts, default=["12x192"], help="depth x width")
    parser.add_argument("--routing", type=texts, default=["dense", "top1"])
    parser.add_argument("--batch", type=numbers, default=[4, 16], help="images of a batch, one batch per rank")
    parser.add_argument("--patch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn", type=float, default=0.5, help="seconds that a contender runs at a time")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "bench/results/dist.json")
    return parser.parse_args()


class Ranks(Process):
    """The processes of a group, of which rank 0 answers."""

    def __init__(self, command, ranks, folder, port):
        self.others = []
        for rank in reversed(range(ranks)):  # rank 0 last
            environment = {
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "SPARSIGHT_STORE": str(folder / f"store{port}"),
                "OMP_NUM_THREADS": "1",
            }
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            if rank > 0:
                self.others.append(process)
        self.process, self.pid = process, process.pid
        said = self.ask()
        if "skipped" in said:
            sys.exit(f"error: {' '.join(command[:2])}: {process.stderr.read()[-1000:]}")

    def pids(self):
        return [self.pid, *(process.pid for process in self.others)]

    def close(self):
        super().close()
        for process in self.others:
            process.wait()


def contenders(options, case, folder, port):
    ranks = case["ranks"]
    ours = [str(options.build / "bench/sparsight_bench"), "dist", "--size", case["size"], "--patch", str(options.patch)]
    ours += ["--routing", case["routing"], "--batch", str(case["batch"])]
    ddp = dict(size=case["size"], patch=options.patch, routing=case["routing"], batch=case["batch"], threads=1)
    script = str(pathlib.Path(__file__).with_name("dist_rank.py"))
    return {
        "ours": Ranks([*ours, "--threads", "1"], ranks, folder, port),
        "DDP": Ranks([sys.executable, script, json.dumps(ddp)], ranks, folder, port + 1),
        "one process": Ranks([*ours, "--threads", str(ranks), "--batches", str(ranks)], 1, folder, port + 2),
    }


def measure(options, case, folder, port):
    running = contenders(options, case, folder, port)
    times, warning = time_in_turn(
        running, options.rounds, lambda name, runs: running[name].ask(str(runs))["seconds"], options.turn
    )
    for process in running.values():
        process.close()
    row = dict(case, warning=warning, seconds={}, ratios={})
    for name, values in times.items():
        row["seconds"][name] = dict(zip(("median", "low", "high"), rounds.median_interval(values)))
        ratio = rounds.median_interval([a / b for a, b in zip(times["ours"], values)])
        row["ratios"][name] = dict(zip(("median", "low", "high"), ratio))
    return row


def print_table(results):
    print(f"{results['machine']}; ms of a training step, each rank with a batch; in brackets ours / other")
    print(rounds.interval_note(results["rounds"]))
    rounds.header("size", "MLPs", "ranks", "batch", "ours", "DDP", "one process of as many threads")
    for row in results["rows"]:
        cell = lambda name: (  # noqa: E731
            f"{rounds.milliseconds(row['seconds'][name]['median'])}, {row['ratios'][name]['median']:.2f} "
            f"[{row['ratios'][name]['low']:.2f}, {row['ratios'][name]['high']:.2f}]"
        )
        ours = rounds.milliseconds(row["seconds"]["ours"]["median"])
        rounds.row(row["size"], row["routing"], row["ranks"], row["batch"], ours, cell("DDP"), cell("one process"))
    for warning in sorted({row["warning"] for row in results["rows"]} - {""}):
        print(warning)


def main():
    options = parse_options()
    cpu = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    results = dict(
        benchmark="dist",
        machine=f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores",
        commit=os.environ.get("SPARSIGHT_COMMIT", ""),
        rounds=options.rounds,
        rows=[],
    )
    port = 29700
    with tempfile.TemporaryDirectory() as folder:
        for size in options.size:
            for routing in options.routing:
                for ranks in options.ranks:
                    for batch in options.batch:
                        case = dict(size=size, routing=routing, ranks=ranks, batch=batch)
                        results["rows"].append(measure(options, case, pathlib.Path(folder), port))
                        port += 3
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    print_table(results)


if __name__ == "__main__":
    main()
