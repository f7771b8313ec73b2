"""Load balancing losses of MoE layers inside a model that does not know about them."""
import contextlib

import torch

from .moe_mlp import MoEMLP


class CollectedRoutings:
    """The routings of the forward passes inside `collect_routings`."""

    def __init__(self, layers):
        #: {module name: [the `sparsight.Routing` of each forward pass]}
        self.by_layer = {name: [] for name in layers}
        self._routers = {name: layer.router for name, layer in layers.items()}

    @property
    def loss(self):
        """[], the weighted losses of the routers, summed over layers and forward passes; differentiable.

        The guided loss `superclass` is averaged over the layers that have it.
        """
        losses = [self._layer_loss(name, routing) for name, routings in self.by_layer.items() for routing in routings]
        return torch.stack(losses).sum() if losses else torch.zeros(())

    def _layer_loss(self, layer, routing):
        loss = routing.loss
        for name in self._averaged_by(layer):
            count = sum(name in self._averaged_by(other) for other, routings in self.by_layer.items() if routings)
            excess = self._routers[layer].loss_weights[name] * (1 - 1 / count)
            loss = loss - excess * routing.losses[name]
        return loss

    def _averaged_by(self, layer):
        return getattr(self._routers[layer], "averaged_losses", ())


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
