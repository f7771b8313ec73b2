"""torchvision's vision transformers for tests, also of a torchvision whose compiled operators do not fit this torch: the models use
none of them, but the import describes two."""
import sys

import torch

OPERATORS = ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
             "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_library = None


def import_vision_transformer():
    """torchvision.models.vision_transformer, or None."""
    global _library
    try:
        from torchvision.models import vision_transformer
    except ImportError:
        return None
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        _library = torch.library.Library("torchvision", "FRAGMENT")  # the definitions live as long as it does
        for operator in OPERATORS:
            _library.define(operator)
        from torchvision.models import vision_transformer
    return vision_transformer
