"""Runs frozen mixture-of-experts vision models, without torch.

    import sparsight_infer as infer
    model = infer.open("model.sparsight")
    model.predict("cat.jpg", top=3)     # [Guess(name='cat', probability=0.97, label=3), ...]
    model.logits(pixels)                # of [B,C,H,W] or [C,H,W], float32 from 0 to 1
    model.routing()                     # which experts the last image or batch used
"""
from ._library import Error, version
from .model import Guess, Model, Routing, open

__all__ = ["Error", "Guess", "Model", "Routing", "open"]
__version__ = version()
