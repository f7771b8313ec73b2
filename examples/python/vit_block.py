"""Replaces the MLP of a plain PyTorch transformer block by a mixture of experts, and trains it on generated patterns.

    python examples/python/vit_block.py [--steps 60] [--compile]

Any block whose MLP is a module can be changed in the same way: for timm `block.mlp = sparsight.MoEMLP(...)` is enough.
The MLP of torch.nn.TransformerEncoderLayer is spread over two attributes, hence the subclass.
"""
import argparse

import torch
from torch import nn

import sparsight


class MoEBlock(nn.TransformerEncoderLayer):
    """A pre-norm block whose MLP is made of experts. Returns (tokens, routing)."""

    def __init__(self, dim, heads, hidden, experts, k):
        super().__init__(dim, heads, 1, dropout=0.0, batch_first=True, norm_first=True)
        del self.linear1, self.linear2
        self.mlp = sparsight.MoEMLP(dim, hidden, experts, k)

    def forward(self, x):
        x = x + self._sa_block(self.norm1(x), None, None)
        y, routing = self.mlp(self.norm2(x), return_routing=True)
        return x + y, routing


class Classifier(nn.Module):
    """8x8 images as 16 patches. Returns (logits, routing)."""

    def __init__(self, classes, dim=32):
        super().__init__()
        self.patches = nn.Conv2d(1, dim, 2, stride=2)
        self.places = nn.Parameter(0.02 * torch.randn(16, dim))
        self.block = MoEBlock(dim, heads=4, hidden=64, experts=4, k=2)
        self.head = nn.Linear(dim, classes)

    def forward(self, images):
        x, routing = self.block(self.patches(images).flatten(2).transpose(1, 2) + self.places)
        return self.head(x.mean(1)), routing


def batch(size):
    """Noisy stripes: vertical, horizontal or both."""
    label = torch.randint(0, 3, (size,))
    ramp = (torch.arange(8) % 4 < 2).float() - 0.5
    across, down = ramp.view(1, 8).expand(8, 8), ramp.view(8, 1).expand(8, 8)
    kinds = torch.stack([across, down, (across + down) / 2])
    return kinds[label].unsqueeze(1) + 0.3 * torch.randn(size, 1, 8, 8), label


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = Classifier(classes=3)
    run = torch.compile(model, fullgraph=True) if options.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(options.steps):
        images, label = batch(64)
        logits, routing = run(images)
        task = nn.functional.cross_entropy(logits, label)
        optimizer.zero_grad()
        (task + routing.loss).backward()
        optimizer.step()
        if step % 20 == 0 or step + 1 == options.steps:
            share = (routing.chosen_count / routing.chosen_count.sum()).tolist()
            print(f"step {step}: loss {task.item():.3f}, share of each expert " + " ".join(f"{s:.2f}" for s in share))
    model.eval()
    with torch.no_grad():
        images, label = batch(512)
        accuracy = (model(images)[0].argmax(1) == label).float().mean().item()
    print(f"accuracy on new images: {accuracy:.3f}")


if __name__ == "__main__":
    main()
