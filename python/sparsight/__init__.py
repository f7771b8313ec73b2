"""Sparse mixture-of-experts layers for PyTorch: routers, experts and load balancing losses, fast on a CPU.

    import sparsight
    layer = sparsight.MoEMLP(384, 1536, experts=8, k=2)

docs/python.md has an example of each part. The operators are `torch.ops.sparsight.*`; they work under torch.compile.
"""
from . import losses
from ._attack import AttackResult, attack
from ._library import ops
from ._load import LoadedModel, load
from .collect import CollectedRoutings, collect_routings
from .dense import MLP, mlp, self_attention
from .moe_mlp import MoEMLP, moe_mlp
from .router import Router, routers
from .routing import Routing, SoftRouting

__version__ = ops.version()
__all__ = ["AttackResult", "CollectedRoutings", "LoadedModel", "MLP", "MoEMLP", "Router", "Routing", "SoftRouting", "attack",
           "collect_routings", "load", "losses", "mlp", "moe_mlp", "ops", "routers", "self_attention"]
