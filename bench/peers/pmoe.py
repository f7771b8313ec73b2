"""Times an epoch of the patch network (Chowdhury et al. 2023, separate training on grids of digits) against PyTorch.

Two ways to write it in PyTorch: all patches through the filters and a mask ("dense"), and only the chosen patches
("gathered"). Patches are in memory, routers are frozen, batches of 20, plain SGD. Ours runs as `sparsight_bench pmoe`,
in turn with both, round after round. Prints the medians, the ratio of ours to each with its interval, and the peak
memory of ours with 16,000 samples.
Use: pmoe.py [--bench build/release/bench/sparsight_bench] [--samples 1000] [--threads 2] [--rounds 5]
"""

import argparse
import json
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F

import rounds

PATCHES, WIDTH, EXPERTS, FILTERS, TAKEN, BATCH, LR = 16, 784, 2, 20, 2, 20, 0.2


class Separate(torch.nn.Module):
    def __init__(self, gathered):
        super().__init__()
        self.gathered = gathered
        self.router = torch.nn.Parameter(torch.randn(WIDTH, EXPERTS) * 0.1, requires_grad=False)
        self.filters = torch.nn.Parameter(torch.randn(EXPERTS, WIDTH, FILTERS) * 0.1)
        self.register_buffer("out", torch.randn(EXPERTS, FILTERS))

    def forward(self, x):  # [B,n,d] -> [B]
        top = (x @ self.router).topk(TAKEN, dim=1).indices  # [B,l,E]
        if self.gathered:
            rows = x.unsqueeze(1).expand(-1, EXPERTS, -1, -1).gather(2, top.transpose(1, 2).unsqueeze(3).expand(-1, -1, -1, WIDTH))
            hidden = torch.relu(torch.einsum("beld,edf->belf", rows, self.filters))
            return (hidden.sum(2) * self.out).sum((1, 2)) / TAKEN
        mask = torch.zeros(x.shape[0], PATCHES, EXPERTS).scatter(1, top, 1.0)
        hidden = torch.relu(x @ self.filters.transpose(0, 1).reshape(WIDTH, EXPERTS * FILTERS))
        hidden = hidden.view(x.shape[0], PATCHES, EXPERTS, FILTERS) * mask.unsqueeze(3)
        return (hidden.sum(1) * self.out).sum((1, 2)) / TAKEN


def epoch_ms(model, optimizer, x, y):
    start = time.perf_counter()
    order = torch.randperm(len(x))
    for first in range(0, len(x), BATCH):
        ids = order[first : first + BATCH]
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(x[ids]), y[ids]).backward()
        optimizer.step()
    return (time.perf_counter() - start) * 1e3


def ours(options, samples):
    command = [options.bench, "pmoe", "--samples", str(samples), "--epochs", "5", "--threads", str(options.threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/bench/sparsight_bench")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    pixels = torch.rand(options.samples, PATCHES, WIDTH)
    x, y = pixels * (pixels > 0.8), torch.arange(options.samples) % 2 * 1.0
    models = {"dense": Separate(False), "gathered": Separate(True)}
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=LR) for name, model in models.items()}
    times = {"ours": [], "dense": [], "gathered": []}
    for name, model in models.items():
        epoch_ms(model, optimizers[name], x, y)  # warms up
    watch = rounds.Interference()
    for _ in range(options.rounds):
        times["ours"].append(ours(options, options.samples)["epoch_ms"])
        for name, model in models.items():
            times[name].append(epoch_ms(model, optimizers[name], x, y))
    median = {name: statistics.median(values) for name, values in times.items()}
    print(f"an epoch of {options.samples} samples, {options.threads} threads: ours {median['ours']:.1f} ms")
    for name in models:
        ratio = rounds.ratio_text(times["ours"], times[name])
        print(f"plain PyTorch, {name}: {median[name]:.1f} ms; ours / it: {ratio}, {rounds.interval_note(options.rounds)}")
    if warning := watch.warning():
        print(warning)
    print(f"peak memory of ours with 16,000 samples: {ours(options, 16000)['peak_mb']:.0f} MB")


if __name__ == "__main__":
    main()
