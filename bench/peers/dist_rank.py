"""A rank of PyTorch's DistributedDataParallel on gloo, as `sparsight_bench dist` is one of this library: rank 0 reads how
often to step, a number per line, and answers with the seconds of a step. Settings: JSON in the first argument."""

import json
import sys
import time

import torch
import torch.distributed
import torch.nn.functional as F
from vit import Vit


def main():
    settings = json.loads(sys.argv[1])
    torch.set_num_threads(settings["threads"])
    torch.distributed.init_process_group("gloo")
    leads = torch.distributed.get_rank() == 0
    torch.manual_seed(0)
    model = Vit(settings["size"], settings["patch"], settings["routing"]).train()
    parallel = torch.nn.parallel.DistributedDataParallel(
        model, find_unused_parameters=settings["routing"] != "dense", gradient_as_bucket_view=True
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    pixels = torch.rand(settings["batch"], 3, 224, 224)
    labels = torch.arange(settings["batch"])

    def step():
        loss = F.cross_entropy(parallel(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    if leads:
        print(json.dumps({}), flush=True)
    while True:
        runs = torch.zeros(1, dtype=torch.int64)
        if leads:
            line = sys.stdin.readline()
            runs[0] = int(line) if line.strip() else 0
        torch.distributed.broadcast(runs, 0)
        if runs[0] == 0:
            return
        start = time.perf_counter()
        for _ in range(int(runs[0])):
            step()
        if leads:
            print(json.dumps({"seconds": (time.perf_counter() - start) / int(runs[0])}), flush=True)


if __name__ == "__main__":
    main()
