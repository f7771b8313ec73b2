"""A vision transformer in plain PyTorch with timm's names, dense or with MoE layers: what bench/peers/models.py gives to
other engines. The weights are those that `sparsight_bench models --worker` wrote."""

import json
import re

import torch
import torch.nn.functional as F
from gmoe import CosineMoe
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        images, tokens, width = x.shape
        shape = (images, tokens, self.heads, width // self.heads)  # (five dimensions are too many for ncnn)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(images, tokens, width))


class Mlp(nn.Module):
    def __init__(self, width, dropout=0.0):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = dropout

    def forward(self, x):
        return self.fc2(F.dropout(F.gelu(self.fc1(x)), self.dropout, self.training))


def choose(router, seen, k):
    """Gates and experts of each item, [items,k]."""
    return router(seen).softmax(-1).topk(k, dim=-1)


def run_experts(experts, items, decision):
    """items: tokens [N,D] or images [B,S,D]."""
    gate, expert = decision
    out = torch.zeros_like(items)
    for e, mlp in enumerate(experts):
        item, rank = torch.where(expert == e)
        weight = gate[item, rank].reshape(-1, *[1] * (items.dim() - 1))
        out = out.index_add(0, item, (mlp(items[item]) * weight).to(out.dtype))
    return out


class Moe(nn.Module):
    """k of the experts for each token."""

    def __init__(self, width, experts, k):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Mlp(width) for _ in range(experts))
        self.k = k

    def forward(self, x):
        tokens = x.flatten(0, 1)
        return run_experts(self.experts, tokens, choose(self.router, tokens, self.k)).reshape(x.shape)


class ImageMoe(nn.Module):
    """The experts that the model's router chose for each image."""

    def __init__(self, width, experts):
        super().__init__()
        self.experts = nn.ModuleList(Mlp(width) for _ in range(experts))

    def forward(self, x, decision):
        return run_experts(self.experts, x, decision)


class Block(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.mlp = Attention(width, heads), mlp

    def forward(self, x, decision=None):
        x = x + self.attn(self.norm1(x))
        return x + (self.mlp(self.norm2(x), decision) if isinstance(self.mlp, ImageMoe) else self.mlp(self.norm2(x)))


class PatchEmbed(nn.Module):
    def __init__(self, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Vit(nn.Module):
    def __init__(self, size, patch, routing, classes=1000):
        super().__init__()
        depth, width = (int(part) for part in size.split("x"))
        heads = max(width // 64, 2)  # as the library's presets: 6, 3, and 2 for a width of 64
        tokens = (224 // patch) ** 2 + 1
        self.patch_embed = PatchEmbed(width, patch)
        self.cls_token, self.pos_embed = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, tokens, width))
        self.is_random = routing == "gmoe"  # while training
        layers = {
            "gmoe": lambda: CosineMoe(width, 6, Mlp),
            "mobile": lambda: ImageMoe(width, 10),
            "top1": lambda: Moe(width, 8, 1),
            "top2": lambda: Moe(width, 8, 2),
        }
        routed = {"dense": (), "gmoe": (depth - 4, depth - 2)}.get(routing, (depth - 2, depth - 1))
        mlps = (layers[routing]() if i in routed else Mlp(width) for i in range(depth))
        self.blocks = nn.ModuleList(Block(width, heads, mlp) for mlp in mlps)
        self.router = nn.Linear(width, 10, bias=False) if routing == "mobile" else None  # one for both layers
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        decision = None
        for i, block in enumerate(self.blocks):
            if self.router is not None and i == len(self.blocks) - 2:  # once for each image, by its class token
                decision = choose(self.router, F.layer_norm(x[:, 0], x.shape[-1:], eps=1e-6), 1)
            x = block(x, decision)
        return self.head(self.norm(x[:, 0]))

    def auxiliary_loss(self):
        """Of the last forward pass; 0 without GMoE's layers."""
        return sum(block.mlp.loss for block in self.blocks if hasattr(block.mlp, "loss"))


def read_safetensors(path):
    """The fp32 and int64 tensors of a file by name."""
    data = bytearray(open(path, "rb").read())
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        dtype = {"F32": torch.float32, "I64": torch.int64}[entry["dtype"]]
        tensors[name] = torch.frombuffer(data[begin:end], dtype=dtype).reshape(entry["shape"])
    return tensors


def from_file(tensors, size, patch, routing):
    """tensors: of the file. The library stacks the experts' weights, [E,inputs,outputs]; Linear has [outputs,inputs]."""
    state = {}
    for name, value in tensors.items():
        stacked = re.fullmatch(r"(.*\.experts)\.(w|b)(1|2)", name)
        if not stacked:
            state[name] = value
            continue
        for e, own in enumerate(value):
            key = f"{stacked[1]}.{e}.fc{stacked[3]}.{'weight' if stacked[2] == 'w' else 'bias'}"
            state[key] = own.t().contiguous() if stacked[2] == "w" else own
    model = Vit(size, patch, routing)
    model.load_state_dict(state, strict=True)
    return model.eval()
