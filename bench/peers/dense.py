"""Times sparsight.mlp and sparsight.self_attention against PyTorch's operators: eager and torch.compile.

Prints one row per size: milliseconds of each, and in brackets the ratio of ours to it with its interval (below 1: ours
is faster). Everything runs in turn, round after round. Needs the Python package on PYTHONPATH, as build/release/python.
Use: dense.py [--width 384] [--tokens 1x50,1x197,16x197] [--rounds 9] [--compile off]
"""

import argparse
import functools
import statistics

import torch
import torch.nn.functional as F
from peers import time_rounds

import rounds
import sparsight


def plain_mlp(x, w1, b1, w2, b2):
    return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)


def plain_attention(qkv, heads):
    images, tokens, width = qkv.shape
    q, k, v = qkv.view(images, tokens, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(images, tokens, width // 3)


def forward(layer, *inputs):
    with torch.inference_mode():
        layer(*inputs)


def training(layer, *inputs):
    y = layer(*inputs)
    torch.autograd.grad(y, [t for t in inputs if t.requires_grad], torch.ones_like(y))


def measure(name, size, ours, plain, inputs, options):
    for step in (forward, training):
        runs = {"ours": functools.partial(step, ours), "eager": functools.partial(step, plain)}
        if options.compile == "on":
            runs["compiled"] = functools.partial(step, torch.compile(plain))
        for run in runs.values():
            run(*inputs)
        times = time_rounds(runs, [inputs] * max(1, options.repeat // inputs[0].shape[0]), options.rounds)
        cells = [rounds.milliseconds(statistics.median(times["ours"]))]
        for other in list(runs)[1:]:
            cells.append(f"{rounds.milliseconds(statistics.median(times[other]))} ({rounds.ratio_text(times['ours'], times[other])})")
        rounds.row(name, size, step.__name__, *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--tokens", default="1x50,1x197,16x197", help="images x tokens")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeat", type=int, default=32, help="calls per round, divided by the number of images")
    parser.add_argument("--compile", choices=("on", "off"), default="on")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    width, heads = options.width, max(1, options.width // 64)
    interference = rounds.Interference()
    print(f"width {width}, {options.threads} threads, fp32; {rounds.interval_note(options.rounds)}")
    rounds.header("layer", "images x tokens", "pass", "ours, ms", "eager", *["compiled"] * (options.compile == "on"))
    weights = [torch.randn(size) * 0.05 for size in ((4 * width, width), (4 * width,), (width, 4 * width), (width,))]
    for size in options.tokens.split(","):
        images, tokens = map(int, size.split("x"))
        x = torch.randn(images, tokens, width)
        inputs = [t.requires_grad_() for t in (x, *weights)]
        measure("MLP", size, sparsight.mlp, plain_mlp, inputs, options)
        qkv = torch.randn(images, tokens, 3 * width, requires_grad=True)
        ours, plain = (functools.partial(f, heads=heads) for f in (sparsight.self_attention, plain_attention))
        measure("attention", size, ours, plain, [qkv], options)
    print(interference.warning())


if __name__ == "__main__":
    main()
