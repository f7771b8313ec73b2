"""Times sparsight.MoEMLP and the same layer in plain PyTorch (a loop over experts), in turn, in one process.

With k = 2 it also times the layers of packages from PyPI that are installed: mixture-of-experts and st-moe-pytorch,
which have a fixed capacity per expert and drop the other tokens. Prints a row per size: milliseconds of each, forward and in
training (medians), and the ratio of ours to the fastest of the others with its interval. Sizes are those of ViT-S: width 384,
hidden 1536. Use:
  PYTHONPATH=build/release/python python bench/peers/layer.py [--tokens 1,49,197] [--experts 8] [--k 2]
"""

import argparse
import importlib
import statistics
import time

import torch
import torch.nn.functional as F

import rounds
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


def from_packages(experts):
    """The layers of installed packages, by package: modules of x [1,T,D] -> (out [1,T,D], ...)."""
    settings = {
        "mixture_of_experts": dict(hidden_dim=HIDDEN, activation=torch.nn.GELU),
        "st_moe_pytorch": dict(expert_hidden_mult=HIDDEN // WIDTH, gating_top_n=2),
    }
    layers = {}
    for package, own in settings.items():
        try:
            layers[package] = importlib.import_module(package).MoE(dim=WIDTH, num_experts=experts, **own)
        except ImportError as error:
            print(f"# without {package}: {error}")
    return layers


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
    others = from_packages(options.experts) if options.k == 2 else {}
    for package, other in others.items():
        ways[package] = lambda x, other=other: other(x.unsqueeze(0))[0]

    def forward(way, x):
        with torch.no_grad():
            way(x)

    def training(way, x):
        way(x).square().mean().backward()
        for module in (layer, *others.values()):
            module.zero_grad()

    works = (forward, training)
    print(rounds.interval_note(options.rounds))
    rounds.header("T", "E", "k", *[f"{name} {work.__name__}" for work in works for name in (*ways, "ours / fastest other")])
    watch = rounds.Interference()
    for tokens in options.tokens:
        loads = [torch.randn(tokens, WIDTH) for _ in range(LOADS)]
        torch.testing.assert_close(layer(loads[0]), plain(layer, loads[0]), rtol=1e-3, atol=1e-4)
        cells = []
        for work in works:
            times = {name: [] for name in ways}
            for _ in range(options.rounds + 1):  # the first warms up
                for name, way in ways.items():
                    start = time.perf_counter()
                    for x in loads:
                        work(way, x)
                    times[name].append((time.perf_counter() - start) / LOADS)
            ours, *rest = (t[1:] for t in times.values())
            cells += [rounds.milliseconds(statistics.median(t)) for t in (ours, *rest)]
            cells.append(rounds.ratio_text(ours, min(rest, key=statistics.median)))
        rounds.row(tokens, options.experts, options.k, *cells)
    print(watch.warning())


if __name__ == "__main__":
    main()
