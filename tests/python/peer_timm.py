"""timm for tests, also without a torchvision that fits this torch: its models do not use it, its modules only import names from it."""
import sys
import types

import torch

PARTS = ("ops", "ops.misc", "transforms", "transforms.functional", "datasets", "models", "models.feature_extraction", "utils")


class _Anything(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class _Names(types.ModuleType):
    """A module in which every name is an empty class."""
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Anything(name, (), {}))
        return getattr(self, name)


def _replace_torchvision():
    for name in ["torchvision", *(f"torchvision.{part}" for part in PARTS)]:
        sys.modules[name] = _Names(name)
    for part in PARTS:
        parent, _, name = f"torchvision.{part}".rpartition(".")
        setattr(sys.modules[parent], name, sys.modules[f"torchvision.{part}"])


def import_timm():
    """timm, or None."""
    try:
        import torchvision
        torch.ops.torchvision.nms  # noqa: B018  (an AttributeError if it was built for another torch)
        del torchvision
    except (ImportError, RuntimeError, AttributeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        _replace_torchvision()
    try:
        import timm
        return timm
    except ImportError:
        return None
