"""Times the experts of one MoE layer in PyTorch: a loop over experts, torch._grouped_mm, and torch.compile of both.

Prints one row per size: tokens experts k, then milliseconds of each, forward and training, and in brackets the ratio of
the loop to it with its interval; "-" for what does not run here, after a line that says why. Everything runs in turn,
round after round. Compilation is not timed: each load runs once before. Sizes, loads, options and timing
are those of `sparsight_bench moe`, after which `./dev bench moe` runs this.
Use: peers.py [--tokens 49,197] [--experts 32] [--compile off]
"""

import argparse
import functools
import logging
import random
import statistics
import time

import torch
import torch.nn.functional as F

import rounds

WIDTH, HIDDEN, LOADS = 384, 1536, 8


def mlp(x, gate, w1, b1, w2, b2):
    return torch.addmm(b2, F.gelu(torch.addmm(b1, x, w1)), w2) * gate.unsqueeze(1)


def loop(x, expert, gate, w1, b1, w2, b2, one=mlp):
    out = torch.zeros_like(x)
    for e in range(w1.shape[0]):
        token, rank = torch.where(expert == e)
        if len(token) > 0:
            out = out.index_add(0, token, one(x[token], gate[token, rank], w1[e], b1[e], w2[e], b2[e]))
    return out


def grouped_mm(x, expert, gate, w1, b1, w2, b2):
    flat = expert.reshape(-1)
    order = torch.argsort(flat, stable=True)
    ends = torch.bincount(flat, minlength=w1.shape[0]).cumsum(0).to(torch.int32)
    of, token = flat[order], order // expert.shape[1]
    hidden = F.gelu(torch._grouped_mm(x[token], w1, offs=ends) + b1[of])
    rows = (torch._grouped_mm(hidden, w2, offs=ends) + b2[of]) * gate.reshape(-1)[order].unsqueeze(1)
    return torch.zeros_like(x).index_add(0, token, rows)


def time_rounds(runs, loads, count):
    """Seconds per load in each round, by name; the order changes every round."""
    times, random_order = {name: [] for name in runs}, random.Random(1)
    for _ in range(count):
        order = list(runs)
        random_order.shuffle(order)
        for name in order:
            start = time.perf_counter()
            for load in loads:
                runs[name](*load)
            times[name].append((time.perf_counter() - start) / len(loads))
    return times


def make_works(way, weights):
    def forward(x, expert, gate):
        with torch.no_grad():
            way(x, expert, gate, *weights)

    def train(x, expert, gate):
        x, gate = x.detach().requires_grad_(), gate.detach().requires_grad_()
        way(x, expert, gate, *weights).sum().backward()
        for weight in weights:
            weight.grad = None

    return {"forward": forward, "train": train}


def runnable(runs, loads, failed):
    """Those that run on every load (which also compiles them); prints once why another does not."""
    kept = {}
    for name, run in runs.items():
        if name in failed:
            continue
        try:
            for load in loads:
                run(*load)
            kept[name] = run
        except Exception as error:  # does not run here: print it once and go on
            failed.add(name)
            lines = str(error).splitlines() or [""]
            reason = [line for line in lines if "Expected" in line] or lines  # torch.compile prints much else
            print(f"# {name} does not run: {type(error).__name__}:", reason[0].strip())
    return kept


def make_cells(columns, times):
    for name in columns:
        if name not in times:
            yield "-"
            continue
        loop = "loop " + name.split()[-1]
        ratio = "" if name == loop or loop not in times else f", {rounds.ratio_text(times[loop], times[name])}"
        yield rounds.milliseconds(statistics.median(times[name])) + ratio


def main():
    numbers = lambda text: [int(part) for part in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=numbers, default=[1, 49, 197])
    parser.add_argument("--experts", type=numbers, default=[32])
    parser.add_argument("--k", type=numbers, default=[1, 2])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", choices=("on", "off"), default="on")
    parser.add_argument("--training", choices=("on", "off"), default="on")
    for other in ("--packed", "--routing", "--memory", "--contenders", "--thousands", "--many-experts", "--many-hidden",
                  "--many-tokens", "--json"):  # of sparsight_bench alone
        parser.add_argument(other, help=argparse.SUPPRESS)
    parser.add_argument("--experts-table", choices=("on", "off"), default="on", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.experts_table == "off":  # nothing to compare
        return
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    ways = {"loop": loop, "grouped_mm": grouped_mm}
    if options.compile == "on":
        torch._dynamo.config.recompile_limit = 1000  # a variant for each size, without falling back to eager
        # Finding an expert's tokens cannot be part of a graph; what is done with them can.
        ways["compiled_loop"] = functools.partial(loop, one=torch.compile(mlp, dynamic=True))
        ways["compiled_grouped_mm"] = torch.compile(grouped_mm, dynamic=True)
        logging.getLogger("torch").setLevel(logging.CRITICAL)  # failures to compile are printed below, in one line
    failed, watch = set(), rounds.Interference()
    works = ("forward", "train") if options.training == "on" else ("forward",)
    columns = [f"{name} {work}" for name in ways for work in works]
    print(f"ms (medians); in brackets: loop / it, {rounds.interval_note(options.rounds)}")
    rounds.header("T", "E", "k", *columns)
    for experts in options.experts:
        shapes = [(experts, WIDTH, HIDDEN), (experts, HIDDEN), (experts, HIDDEN, WIDTH), (experts, WIDTH)]
        weights = [(torch.randn(shape) * 0.05).requires_grad_() for shape in shapes]
        runs = {f"{name} {work}": make_works(way, weights)[work] for name, way in ways.items() for work in works}
        for k in options.k:
            for tokens in options.tokens:
                loads = []
                for _ in range(LOADS):
                    gate, expert = torch.randn(tokens, experts).softmax(1).topk(k, dim=1)
                    loads.append((torch.randn(tokens, WIDTH), expert, gate))
                times = time_rounds(runnable(runs, loads, failed), loads, options.rounds)
                rounds.row(tokens, experts, k, *make_cells(columns, times))
    print(watch.warning())


if __name__ == "__main__":
    main()
