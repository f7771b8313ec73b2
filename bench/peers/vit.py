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


class Moe(nn.Module):
    """k of the experts for each token, or for each image by its class token."""

    def __init__(self, width, experts, k, per_image):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Mlp(width) for _ in range(experts))
        self.k, self.per_image = k, per_image

    def forward(self, x):
        seen = F.layer_norm(x[:, 0], x.shape[-1:], eps=1e-6) if self.per_image else x.flatten(0, 1)
        gate, expert = self.router(seen).softmax(-1).topk(self.k, dim=-1)
        items = x if self.per_image else x.flatten(0, 1)  # images or tokens
        out = torch.zeros_like(items)
        for e, mlp in enumerate(self.experts):
            item, rank = torch.where(expert == e)
            weight = gate[item, rank].reshape(-1, *[1] * (items.dim() - 1))
            out = out.index_add(0, item, (mlp(items[item]) * weight).to(out.dtype))
        return out.reshape(x.shape)


class Block(nn.Module):
    def __init__(self, width, heads, mlp):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.mlp = Attention(width, heads), mlp

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Vit(nn.Module):
    def __init__(self, size, patch, routing, classes=1000, experts=8):
        super().__init__()
        depth, width = (int(part) for part in size.split("x"))
        heads = max(width // 64, 2)  # as the library's presets: 6, 3, and 2 for a width of 64
        tokens = (224 // patch) ** 2 + 1
        self.patch_embed = PatchEmbed(width, patch)
        self.cls_token, self.pos_embed = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, tokens, width))
        self.is_random = routing == "gmoe"  # while training
        if self.is_random:
            moe = lambda: CosineMoe(width, 6, Mlp)  # noqa: E731
        else:
            moe = lambda: Moe(width, experts, 2 if routing == "top2" else 1, routing == "image1")  # noqa: E731
        routed = {"dense": (), "gmoe": (depth - 4, depth - 2)}.get(routing, (depth - 2, depth - 1))
        self.blocks = nn.Sequential(*(Block(width, heads, moe() if i in routed else Mlp(width)) for i in range(depth)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x)[:, 0]))

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
