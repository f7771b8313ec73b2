"""Times the experts of one MoE layer in PyTorch: a loop over experts, torch._grouped_mm, and torch.compile of both.

Prints one line per size: tokens experts k, then milliseconds of each, forward and training; "-" for what does not run
here, after a line that says why. Compilation is not timed: each load runs once before. Sizes, loads, options and timing
are those of `sparsight_bench moe`, after which `./dev bench moe` runs this.
Use: peers.py [--tokens 49,197] [--experts 32] [--compile off]
"""

import argparse
import functools
import logging
import time

import torch
import torch.nn.functional as F

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


def median_ms(run, loads, rounds):
    times = []
    for load in loads:
        run(*load)
    for _ in range(rounds):
        start = time.perf_counter()
        for load in loads:
            run(*load)
        times.append((time.perf_counter() - start) / len(loads))
    return sorted(times)[len(times) // 2] * 1e3


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
    for other in ("--packed", "--routing", "--memory", "--contenders"):  # of sparsight_bench alone
        parser.add_argument(other, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    ways = {"loop": loop, "grouped_mm": grouped_mm}
    if options.compile == "on":
        torch._dynamo.config.recompile_limit = 1000  # a variant for each size, without falling back to eager
        # Finding an expert's tokens cannot be part of a graph; what is done with them can.
        ways["compiled_loop"] = functools.partial(loop, one=torch.compile(mlp, dynamic=True))
        ways["compiled_grouped_mm"] = torch.compile(grouped_mm, dynamic=True)
        logging.getLogger("torch").setLevel(logging.CRITICAL)  # failures to compile are printed below, in one line
    failed = set()
    columns = ("forward", "train") if options.training == "on" else ("forward",)
    print("T E k", *[f"{name}:{column}" for name in ways for column in columns])
    for experts in options.experts:
        shapes = [(experts, WIDTH, HIDDEN), (experts, HIDDEN), (experts, HIDDEN, WIDTH), (experts, WIDTH)]
        weights = [(torch.randn(shape) * 0.05).requires_grad_() for shape in shapes]
        for k in options.k:
            for tokens in options.tokens:
                loads = []
                for _ in range(LOADS):
                    gate, expert = torch.randn(tokens, experts).softmax(1).topk(k, dim=1)
                    loads.append((torch.randn(tokens, WIDTH), expert, gate))
                cells = []
                for name, way in ways.items():

                    def forward(x, expert, gate):
                        with torch.no_grad():
                            way(x, expert, gate, *weights)

                    def train(x, expert, gate):
                        x, gate = x.detach().requires_grad_(), gate.detach().requires_grad_()
                        way(x, expert, gate, *weights).sum().backward()
                        for weight in weights:
                            weight.grad = None

                    for run in (forward, train) if options.training == "on" else (forward,):
                        cells.append("-")
                        if (name, run.__name__) in failed:
                            continue
                        try:
                            cells[-1] = f"{median_ms(run, loads, options.rounds):.3f}"
                        except Exception as error:  # does not run here: print it once and go on
                            failed.add((name, run.__name__))
                            lines = str(error).splitlines() or [""]
                            reason = [line for line in lines if "Expected" in line] or lines  # torch.compile prints much else
                            print(f"# {name}:{run.__name__} does not run: {type(error).__name__}:", reason[0].strip())
                print(tokens, experts, k, *cells, flush=True)


if __name__ == "__main__":
    main()
