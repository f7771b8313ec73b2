"""The MoE layer of GMoE (Li et al. 2023) in plain PyTorch, as its users write it: a cosine router with noise, one expert
per token, capacity by batch priority, importance and load losses, dropout in the experts."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class CosineRouter(nn.Module):
    def __init__(self, width, experts, projection=256):
        super().__init__()
        self.projector, self.projector_bias = nn.Parameter(torch.zeros(projection, width)), nn.Parameter(torch.zeros(projection))
        self.codebook, self.log_scale = nn.Parameter(torch.zeros(projection, experts)), nn.Parameter(torch.zeros(()))

    def forward(self, x):
        cosine = F.normalize(F.linear(x, self.projector, self.projector_bias), dim=1) @ F.normalize(self.codebook, dim=0)
        return cosine * self.log_scale.clamp(max=math.log(100)).exp()


def squared_cv(x):
    return x.var(unbiased=False) / x.mean() ** 2


class CosineMoe(nn.Module):
    """mlp(width, dropout) makes an expert."""

    def __init__(self, width, experts, mlp, capacity=1.5):
        super().__init__()
        self.router = CosineRouter(width, experts)
        self.experts = nn.ModuleList(mlp(width, dropout=0.1) for _ in range(experts))
        self.capacity, self.loss = capacity, 0.0

    def forward(self, x):
        tokens, count = x.flatten(0, 1), len(self.experts)
        clean = self.router(tokens.float())
        noisy = clean + torch.randn_like(clean) / count if self.training else clean
        gate, expert = noisy.softmax(-1).max(-1)
        if self.training:
            load = torch.distributions.Normal(0, 1).cdf((clean - noisy.gather(1, expert[:, None])) * count).sum(0)
            self.loss = 0.005 * (squared_cv(clean.softmax(-1).sum(0)) + squared_cv(load))
        limit = math.floor(self.capacity * math.ceil(tokens.shape[0] / count))
        order = gate.argsort(descending=True, stable=True)
        out = torch.zeros_like(tokens)
        for e, mlp in enumerate(self.experts):
            token = order[expert[order] == e][:limit]
            out = out.index_add(0, token, (mlp(tokens[token]) * gate[token, None]).to(out.dtype))
        return out.reshape(x.shape)
