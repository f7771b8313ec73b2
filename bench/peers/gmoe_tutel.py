"""The MoE layers of GMoE (Li et al. 2023) by Tutel, as the official code makes them: cosine gate, one expert per token,
capacity 1.5 by batch priority, noise 1/E, importance and load losses, dropout in the experts.

Install Tutel (github.com/microsoft/tutel) for CPUs: NO_CUDA=1 pip install --no-build-isolation TUTEL
"""

import torch
import torch.nn.functional as F
from gmoe import CosineMoe
from tutel import moe


def hidden(x, experts):
    return F.dropout(F.gelu(x), 0.1, experts.training)


class TutelMoe(torch.nn.Module):
    """`like` gives the weights."""

    def __init__(self, like):
        super().__init__()
        count, width = len(like.experts), like.experts[0].fc1.in_features
        self.layer = moe.moe_layer(
            gate_type={"type": "cosine_top", "k": 1, "capacity_factor": like.capacity, "gate_noise": 1.0, "fp32_gate": True},
            model_dim=width,
            experts={"type": "ffn", "count_per_node": count, "hidden_size_per_expert": 4 * width, "activation_fn_with_self": hidden},
            batch_prioritized_routing=True,
            is_gshard_loss=False,
        )
        gate, experts, router = self.layer.gates[0], self.layer.experts, like.router
        with torch.no_grad():
            gate.temperature.copy_(router.log_scale)
            gate.cosine_projector.weight.copy_(router.projector)
            gate.cosine_projector.bias.copy_(router.projector_bias)
            gate.sim_matrix.copy_(router.codebook)
            for e, mlp in enumerate(like.experts):
                experts.batched_fc1_w[e] = mlp.fc1.weight
                experts.batched_fc1_bias[e] = mlp.fc1.bias
                experts.batched_fc2_w[e] = mlp.fc2.weight.t()
                experts.batched_fc2_bias[e] = mlp.fc2.bias
        self.loss = 0.0

    def forward(self, x):
        out = self.layer(x)
        self.loss = 0.01 * out.l_aux
        return out


def set_capacity(model, factor):
    """Of all layers; returns what it was."""
    for block in model.blocks:
        if isinstance(block.mlp, CosineMoe):
            before, block.mlp.capacity = block.mlp.capacity, factor
        elif isinstance(block.mlp, TutelMoe):
            gate = block.mlp.layer.gates[0]
            before, gate.capacity_factor = gate.capacity_factor, factor
    return before


def with_tutel(model):
    """The model with Tutel's layers instead of its CosineMoe layers."""
    for block in model.blocks:
        if isinstance(block.mlp, CosineMoe):
            block.mlp = TutelMoe(block.mlp)
    return model
