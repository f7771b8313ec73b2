"""Makes convnext_golden.safetensors, the expected outputs of Sparsight's ConvNeXt, with timm, and compares them
with torchvision's.

The networks are timm's ConvNeXt-T and a small one; of their weights the file has none: both sides compute them from the
names (make_weights of make_resnet_golden.py, convnext_golden_test.cpp). The file has images, features and logits. Run
it in an environment of its own:

    pip install torch timm torchvision safetensors && python tests/golden/make_convnext_golden.py

The committed file came from timm 1.0.31, torchvision 0.28.0 and torch 2.13.0.
"""

import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../judge"), os.path.join(HERE, "../python")]
import peer_timm  # noqa: E402
import peer_torchvision  # noqa: E402

torchvision_convnext = peer_torchvision.import_model("convnext")
timm = peer_timm.import_timm()
from make_resnet_golden import CLASSES, make_weights, uniform  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


def golden_model(prefix, model, height, width):
    weights = make_weights(model)
    model.load_state_dict(weights, strict=True)
    model.eval()
    images = (uniform(1000, (2, 3, height, width)) + 0.5).float()
    with torch.no_grad():
        features = model.forward_head(model.forward_features(images), pre_logits=True)
        return {prefix + "/images": images, prefix + "/features": features, prefix + "/logits": model(images)}, weights


def torchvision_name(name):
    """Translates timm's name in ConvNeXt-T: written here a second time, so that a mistake of the program's names shows."""
    parts = name.split(".")
    if parts[0] == "stem":
        return ".".join(["features.0", *parts[1:]])
    if parts[0] == "head":
        return ".".join(["classifier", {"norm": "0", "fc": "2"}[parts[1]], parts[2]])
    stage = int(parts[1])
    if parts[2] == "downsample":
        return ".".join([f"features.{2 * stage}", *parts[3:]])
    inside = ".".join(parts[4:])
    for ours, theirs in (("gamma", "layer_scale"), ("conv_dw", "block.0"), ("norm", "block.2"), ("mlp.fc1", "block.3"),
                         ("mlp.fc2", "block.5")):
        inside = inside.replace(ours, theirs)
    return f"features.{2 * stage + 1}.{parts[3]}.{inside}"


def compare_with_torchvision(weights, tensors):
    model = torchvision_convnext.convnext_tiny(num_classes=CLASSES)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    model.load_state_dict({torchvision_name(name): value.reshape(shapes[torchvision_name(name)]) for name, value in weights.items()},
                          strict=True)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(tensors["tiny/images"]), tensors["tiny/logits"], rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    tensors, weights = golden_model("tiny", timm.create_model("convnext_tiny", num_classes=CLASSES), 64, 96)
    compare_with_torchvision(weights, tensors)
    small = timm.models.convnext.ConvNeXt(num_classes=CLASSES, dims=(16, 24, 32, 48), depths=(1, 2, 1, 1))
    tensors |= golden_model("small", small, 32, 64)[0]
    path = os.path.join(HERE, "convnext_golden.safetensors")
    metadata = {"made by": f"make_convnext_golden.py with timm {timm.__version__}, torch {torch.__version__}"}
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    print(path, os.path.getsize(path), "bytes")
