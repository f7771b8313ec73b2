"""Times sparsight.MoEMLP beside the same layer in plain PyTorch (a loop over experts), in turn, in one process.

Prints a line per size: milliseconds forward and training of each, and how many times faster ours is. Sizes are those of
ViT-S: width 384, hidden 1536. Use: PYTHONPATH=build/release/python python bench/peers/layer.py [--tokens 1,49,197]
"""

import argparse
import time

import torch
import torch.nn.functional as F

import sparsight

WIDTH, HIDDEN, LOADS = 384, 1536, 8


def plain(layer, x):
    w = layer.experts
    gate, expert = F.linear(x, layer.router.weight).softmax(1).topk(layer.router.per_token, dim=1)
    out = torch.zeros_like(x)
    for e in range(w.w1.shape[0]):
        token, rank = torch.where(expert == e)
        if len(token) == 0:
            continue
        hidden = F.gelu(torch.addmm(w.b1[e], x[token], w.w1[e]))
        out = out.index_add(0, token, torch.addmm(w.b2[e], hidden, w.w2[e]) * gate[token, rank].unsqueeze(1))
    return out


def main():
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=numbers, default=[1, 49, 197, 1576])
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--k", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    layer = sparsight.MoEMLP(WIDTH, HIDDEN, options.experts, options.k, noise=0.0)
    ways = {"ours": layer, "plain": lambda x: plain(layer, x)}

    def forward(way, x):
        with torch.no_grad():
            way(x)

    def training(way, x):
        way(x).square().mean().backward()
        layer.zero_grad()

    print("T E k ours:forward plain:forward faster ours:train plain:train faster")
    for tokens in options.tokens:
        loads = [torch.randn(tokens, WIDTH) for _ in range(LOADS)]
        torch.testing.assert_close(layer(loads[0]), plain(layer, loads[0]), rtol=1e-3, atol=1e-4)
        cells = []
        for work in (forward, training):
            times = {name: [] for name in ways}
            for _ in range(options.rounds + 1):  # the first warms up
                for name, way in ways.items():
                    start = time.perf_counter()
                    for x in loads:
                        work(way, x)
                    times[name].append((time.perf_counter() - start) / LOADS * 1e3)
            ours, loop = (sorted(t[1:])[options.rounds // 2] for t in times.values())
            cells += [f"{ours:.3f}", f"{loop:.3f}", f"{loop / ours:.2f}"]
        print(tokens, options.experts, options.k, *cells, flush=True)


if __name__ == "__main__":
    main()
