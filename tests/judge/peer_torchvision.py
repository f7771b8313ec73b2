"""torchvision's vision transformers and ResNets for tests, also of a torchvision whose compiled operators do not fit this torch: the
models use none of them, but the import describes two."""
import importlib
import sys

import torch

OPERATORS = ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
             "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_library = None


def import_model(name):
    """The module torchvision.models.NAME, or None."""
    global _library
    try:
        return importlib.import_module("torchvision.models." + name)
    except ImportError:
        return None
    except RuntimeError:
        for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] == "torchvision"]:
            del sys.modules[loaded]
        _library = torch.library.Library("torchvision", "FRAGMENT")  # the definitions live as long as it does
        for operator in OPERATORS:
            _library.define(operator)
        return importlib.import_module("torchvision.models." + name)


def import_vision_transformer():
    """torchvision.models.vision_transformer, or None."""
    return import_model("vision_transformer")
