"""Trained ResNets and (routed) vision transformers of Sparsight in plain PyTorch, as functions of the weights of a
checkpoint: what an independent program sees of them. With convolutional stems, experts and routers as they evaluate: no
noise, and a capacity that drops nothing."""

import json

import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}


def read_weights(path):
    """The model's tensors of a checkpoint by name, without those of its training; and its configuration."""
    data = bytearray(open(path, "rb").read())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    config = json.loads(header.pop("__metadata__")["config"])
    weights = {}
    for name, entry in header.items():
        if not name.startswith("training/"):
            begin, end = (start + offset for offset in entry["data_offsets"])
            weights[name] = torch.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return weights, config


def batch_norm(w, name, x):
    return F.batch_norm(x, w[name + ".running_mean"], w[name + ".running_var"], w[name + ".weight"], w[name + ".bias"])


def group_norm(w, name, x):
    groups = next(x.shape[1] // size for size in range(8, 0, -1) if x.shape[1] % size == 0)
    return F.group_norm(x, groups, w[name + ".weight"], w[name + ".bias"])


def conv(w, name, x, stride=1):
    kernel = w[name + ".weight"]
    return F.conv2d(x, kernel, w.get(name + ".bias"), stride, kernel.shape[-1] // 2)


def resnet(w, settings, x):
    """torchvision's basic blocks behind the stem for small images."""
    x = F.relu(batch_norm(w, "bn1", conv(w, "conv1", x)))
    for layer in range(1, 5):
        block = 0
        while f"layer{layer}.{block}.conv1.weight" in w:
            name, stride = f"layer{layer}.{block}", 2 if layer > 1 and block == 0 else 1
            u = F.relu(batch_norm(w, name + ".bn1", conv(w, name + ".conv1", x, stride)))
            u = batch_norm(w, name + ".bn2", conv(w, name + ".conv2", u))
            if name + ".downsample.0.weight" in w:
                x = batch_norm(w, name + ".downsample.1", conv(w, name + ".downsample.0", x, stride))
            x, block = F.relu(x + u), block + 1
    return F.linear(x.mean((2, 3)), w["fc.weight"], w["fc.bias"])


def linear(w, name, x):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def layer_norm(w, name, x):
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-6)


def attention(w, name, x, heads):
    images, tokens, width = x.shape
    q, k, v = linear(w, name + ".qkv", x).view(images, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    mixed = ((q @ k.transpose(-1, -2)) * (width // heads) ** -0.5).softmax(-1) @ v
    return linear(w, name + ".proj", mixed.transpose(1, 2).reshape(x.shape))


def moe(w, name, x, k):
    """The k most likely experts of each token, weighted with their probabilities among all."""
    tokens = x.flatten(0, 1)
    gate, expert = linear(w, name + ".router", tokens).softmax(-1).topk(k, dim=-1)
    w1, b1, w2, b2 = (w[f"{name}.experts.{part}"] for part in ("w1", "b1", "w2", "b2"))
    out = torch.zeros_like(tokens)
    for e in range(len(w1)):
        token, rank = torch.where(expert == e)
        y = F.gelu(tokens[token] @ w1[e] + b1[e]) @ w2[e] + b2[e]
        out = out.index_add(0, token, y * gate[token, rank][:, None])
    return out.view_as(x)


def vit(w, settings, x):
    for name in sorted({key.rsplit(".", 2)[0] for key in w if key.startswith("patch_embed.stem.")}):
        u = F.relu(group_norm(w, name + ".norm1", conv(w, name + ".conv1", x, 2)))
        u = group_norm(w, name + ".norm2", conv(w, name + ".conv2", u))
        x = F.relu(conv(w, name + ".shortcut", x, 2) + u)
    patch = w["patch_embed.proj.weight"].shape[-1]
    x = F.conv2d(x, w["patch_embed.proj.weight"], w["patch_embed.proj.bias"], patch).flatten(2).transpose(1, 2)
    x = torch.cat([w["cls_token"].expand(len(x), -1, -1), x], 1) + w["pos_embed"]
    for i in range(settings["model"]["depth"]):
        name = f"blocks.{i}"
        x = x + attention(w, name + ".attn", layer_norm(w, name + ".norm1", x), settings["model"]["heads"])
        u = layer_norm(w, name + ".norm2", x)
        if name + ".mlp.router.weight" in w:
            x = x + moe(w, name + ".mlp", u, settings["router"]["k"])
        else:
            x = x + linear(w, name + ".mlp.fc2", F.gelu(linear(w, name + ".mlp.fc1", u)))
    return linear(w, "head", layer_norm(w, "norm", x[:, 0]))


def load_model(path, dtype):
    """Pixels in 0..1 to logits. Raises ValueError for a model that this file does not have."""
    weights, settings = read_weights(path)
    known = {"resnet": resnet, "vit": vit}
    name = settings["model"]["name"]
    routed = any(key.endswith("mlp.router.weight") for key in weights)
    if name not in known or (routed and settings["router"]["name"] != "softmax_topk"):
        raise ValueError(f"{path}: only resnet and vit, dense or with softmax_topk, are written out here")
    weights = {key: value.to(dtype) for key, value in weights.items()}
    mean, std = (weights.pop(f"normalize.{part}").view(1, -1, 1, 1) for part in ("mean", "std"))
    return lambda x: known[name](weights, settings, (x - mean) / std)
