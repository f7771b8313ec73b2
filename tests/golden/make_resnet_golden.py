"""Makes resnet_golden.safetensors, the expected outputs of Sparsight's ResNets, with torchvision.

The networks are torchvision's own of full size; of their weights the file has none: both sides compute them from the names
(make_weights below, resnet_golden_test.cpp). The file has images, features and logits. Run it in an environment of its own:

    pip install torch torchvision safetensors && python tests/golden/make_resnet_golden.py

The committed file came from torchvision 0.28.0 and torch 2.13.0.
"""

import math
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../judge"))
import peer_torchvision  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

resnet = peer_torchvision.import_model("resnet")
CLASSES = 5


def uniform(number, sizes):
    """In -0.5 .. 0.5, a hash of the tensor's number and the element's."""
    count = math.prod(sizes)
    h = (torch.arange(count, dtype=torch.int64) * 2654435761 + (number + 1) * 974711) & 0xFFFFFFFF
    for _ in range(2):
        h = ((h ^ (h >> 16)) * 73244475) & 0xFFFFFFFF
    h = h ^ (h >> 16)
    return (h.double() / 2**32 - 0.5).reshape(sizes)


def make_weights(model, gain=1):
    """By name. Every term of the result shows, and maps stay of order 1."""
    state = {name: value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    weights = {}
    for number, name in enumerate(sorted(state)):
        u = uniform(number, state[name].shape)
        if u.dim() > 1:
            u = u * gain * math.sqrt(12 / u[0].numel())
        elif name.endswith("running_var"):
            u = 1 + u
        else:
            u = 0.6 * u + (1 if name.endswith("weight") else 0)
        weights[name] = u.float()
    return weights


def golden_model(prefix, make, side, cifar_stem=False):
    model = make(num_classes=CLASSES)
    if cifar_stem:  # what implementations for small images change
        model.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    model.load_state_dict(make_weights(model), strict=False)
    model.eval()
    head, model.fc = model.fc, torch.nn.Identity()
    images = (uniform(1000, (2, 3, side, side + 4)) + 0.5).float()
    with torch.no_grad():
        features = model(images)
        return {prefix + "/images": images, prefix + "/features": features, prefix + "/logits": head(features)}


if __name__ == "__main__":
    import torchvision
    tensors = golden_model("18", resnet.resnet18, 45)
    tensors |= golden_model("34", resnet.resnet34, 40)
    tensors |= golden_model("50", resnet.resnet50, 48)
    tensors |= golden_model("18_cifar", resnet.resnet18, 14, cifar_stem=True)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "resnet_golden.safetensors")
    metadata = {"made by": f"make_resnet_golden.py with torchvision {torchvision.__version__}, torch {torch.__version__}"}
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    print(path, os.path.getsize(path), "bytes")
