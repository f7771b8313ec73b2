"""Load balancing losses of MoE layers inside a model that does not know about them."""
import contextlib

import torch

from .moe_mlp import MoEMLP


class CollectedRoutings:
    """The routings of the forward passes inside `collect_routings`."""

    def __init__(self, names):
        #: {module name: [the `sparsight.Routing` of each forward pass]}
        self.by_layer = {name: [] for name in names}

    @property
    def loss(self):
        """[], the weighted load balancing losses, summed over layers and forward passes; differentiable."""
        losses = [routing.loss for routings in self.by_layer.values() for routing in routings]
        return torch.stack(losses).sum() if losses else torch.zeros(())


@contextlib.contextmanager
def collect_routings(model):
    """Collects the routing of every `MoEMLP` of a model, wherever it is.

        with sparsight.collect_routings(model) as routings:
            logits = model(images)
        loss = criterion(logits, labels) + routings.loss

    The layers compute their losses only inside the context. One context per model at a time: models that are shared by
    threads need one `return_routing=True` call each instead.

    Raises:
        ValueError: the model has no `MoEMLP`. RuntimeError: its routings are being collected already.
    """
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, MoEMLP)}
    if not layers:
        raise ValueError("the model has no sparsight.MoEMLP; replace the MLP of a block first")
    if any(layer._collected is not None for layer in layers.values()):
        raise RuntimeError("the routings of this model are being collected already; leave the other context first")
    collected = CollectedRoutings(layers)
    for name, layer in layers.items():
        layer._collected = collected.by_layer[name]
    try:
        yield collected
    finally:
        for layer in layers.values():
            layer._collected = None
