"""Makes mobilenet_golden.safetensors, the expected outputs of Sparsight's MobileNetV2, with torchvision.

The networks are torchvision's own, of three widths and, for small images, with the strides of two stages set to 1. The file has images,
features and logits; both sides compute the weights from their names (make_resnet_golden.py). Run it in an environment of its own:

    pip install torch torchvision safetensors && python tests/golden/make_mobilenet_golden.py

The committed file came from torchvision 0.28.0 and torch 2.13.0.
"""

import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_resnet_golden import CLASSES, peer_torchvision, save_file, uniform, make_weights  # noqa: E402

mobilenetv2 = peer_torchvision.import_model("mobilenetv2")
# torchvision's table with a stride of 1 for 24 channels, as implementations for CIFAR have it.
CIFAR_TABLE = [[1, 16, 1, 1], [6, 24, 2, 1], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]


def golden_model(prefix, width, side, cifar_stem=False):
    model = mobilenetv2.MobileNetV2(num_classes=CLASSES, width_mult=width,
                                    inverted_residual_setting=CIFAR_TABLE if cifar_stem else None)
    if cifar_stem:
        model.features[0][0].stride = (1, 1)
    model.load_state_dict(make_weights(model, gain=1.4), strict=False)  # maps keep their size
    model.eval()
    images = (uniform(1000, (2, 3, side, side + 4)) + 0.5).float()
    with torch.no_grad():
        features = model.features(images).mean((2, 3))
        return {prefix + "/images": images, prefix + "/features": features, prefix + "/logits": model.classifier(features)}


if __name__ == "__main__":
    import torchvision
    tensors = golden_model("1.0", 1.0, 45)
    tensors |= golden_model("0.75", 0.75, 64)
    tensors |= golden_model("0.5", 0.5, 33)
    tensors |= golden_model("0.5_cifar", 0.5, 20, cifar_stem=True)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mobilenet_golden.safetensors")
    metadata = {"made by": f"make_mobilenet_golden.py with torchvision {torchvision.__version__}, torch {torch.__version__}"}
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    print(path, os.path.getsize(path), "bytes")
