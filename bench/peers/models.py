"""Times whole vision transformers in this library and in other engines: the tables `models` and `train` of docs/benchmarks.md,
and the passes that attacks are made of (--input-gradient).

Each engine runs in a process of its own, one at a time, on the same random weights and pixels; outputs are compared before
anything is timed. Rounds in which all engines run in turn, each round in another order. Engines whose package is missing are
left out with a line. Use, with an interpreter that has torch and the packages to compare:
  models.py [--train | --input-gradient] [--size 12x384] [--routing dense,top1] [--batch 1,32] [--engines OpenVINO,PyTorch] [--rounds 15]
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import engines
import rounds
from turns import Process, time_in_turn


def parse_options(arguments):
    texts, numbers = lambda text: text.split(","), lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/bench/sparsight_bench")
    parser.add_argument("--train", dest="training", action="store_true", help="training steps instead of forward passes")
    parser.add_argument("--input-gradient", action="store_true", help="forward passes with the gradient of the pixels")
    parser.add_argument("--size", type=texts)
    parser.add_argument("--routing", type=texts)
    parser.add_argument("--batch", type=numbers)
    parser.add_argument("--patch", type=int)
    parser.add_argument("--type", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--engines", type=texts)
    options = parser.parse_args(arguments)
    usual = (
        dict(size=["12x384"], routing=["dense", "top1", "top2", "gmoe"], batch=[16], patch=16, rounds=7)
        if options.training
        else dict(size=["12x192"], routing=["dense", "top1", "top2"], batch=[32], patch=32, rounds=7)
        if options.input_gradient
        else dict(size=["12x384", "12x192", "6x64"], routing=["dense", "top1", "top2", "mobile"], batch=[1, 32], patch=32, rounds=15)
    )
    for name, value in usual.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


class Bench:
    def __init__(self, options):
        self.options = options
        table = engines.TRAINING if options.training else engines.INPUT_GRADIENT if options.input_gradient else engines.FORWARD
        self.names = [name for name in table if options.engines is None or name in options.engines]
        script = str(pathlib.Path(engines.__file__))
        self.processes = {name: Process([sys.executable, script, name]) for name in self.names}
        self.told, self.warnings = set(), []
        self.peak = 0.0  # the highest that was measured
        for process in self.processes.values():  # all have started before anything is measured
            process.ask("{}")

    def tell(self, text):
        """A line about an engine, once."""
        if text not in self.told:
            self.told.add(text)
            print(f"# {text}", flush=True)

    def case(self, size, routing, batch):
        """(what ours says about the case, times by engine)."""
        options = self.options
        with tempfile.TemporaryDirectory() as folder:
            verb = "train" if options.training else "attack" if options.input_gradient else "models"
            command = [options.bench, verb, "--worker", folder, "--size", size, "--routing", routing, "--batch", str(batch)]
            command += ["--patch", str(options.patch), "--threads", str(options.threads)]
            command += [] if options.input_gradient else ["--type", options.type]
            ours = Process(command)
            ready = ours.ask()
            if "machine" not in ready:
                sys.exit(f"{' '.join(command)} does not run")
            case = dict(vars(options), folder=folder, size=size, routing=routing, batch=batch, loss=ready.get("loss"))
            running = {"ours": ours}
            ours.pause()
            for name, process in self.processes.items():
                process.resume()
                said = process.ask(json.dumps(case))
                process.pause()
                if "skipped" in said:
                    self.tell(f"{name}, {routing}: {said['skipped']}")
                else:
                    running[name] = process
            return ready, self.timed(running)

    def timed(self, running):
        def seconds(name, runs):
            said = running[name].ask(runs if name == "ours" else json.dumps({"runs": runs}))
            self.peak = max(self.peak, said.get("peak", 0))
            return said["seconds"]

        times, warning = time_in_turn(running, self.options.rounds, seconds)
        self.warnings.append(warning)
        running["ours"].close()
        return times


def main():
    options = parse_options(sys.argv[1:])
    bench = Bench(options)
    machine = ""
    for size in options.size:
        for batch in options.batch:
            for routing in options.routing:
                ready, times = bench.case(size, routing, batch)
                if not machine:
                    machine = ready["machine"]
                    what = "forward pass and gradient of the pixels" if options.input_gradient else "forward pass"
                    what = "training step" if options.training else what
                    print(f"{machine}\n{what}; ViT of patch {options.patch} at 224 pixels, {options.type}, ms (medians); in brackets:")
                    print(f"ours / other, {rounds.interval_note(options.rounds)}")
                    rounds.header("size", "MLPs", "batch", "ours", "share of peak", *bench.names)
                share = ready["operations"] / bench.peak / statistics.median(times["ours"])
                cells = []
                for name in bench.names:
                    own = times.get(name)
                    cells.append(
                        f"{rounds.milliseconds(statistics.median(own))}, {rounds.ratio_text(times['ours'], own)}" if own else "-"
                    )
                rounds.row(size, routing, batch, rounds.milliseconds(statistics.median(times["ours"])), f"{share:.2f}", *cells)
    for warning in sorted(set(bench.warnings) - {""}):
        print(f"\n{warning}")
    for process in bench.processes.values():
        process.close()


if __name__ == "__main__":
    main()
