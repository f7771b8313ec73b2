"""Makes vit_variants_golden.safetensors, the expected outputs of Sparsight's vision transformers with norms of
queries and keys, with a distillation token and with attention pooling, with timm.

The models are tiny and have random weights; the file has parameters under timm's names, input images and logits. Run it
in an environment of its own:

    pip install torch timm safetensors && python tests/golden/make_vit_variants_golden.py

The committed file came from timm 1.0.31 and torch 2.13.0.
"""

import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../python"))
import peer_timm  # noqa: E402

timm = peer_timm.import_timm()
from safetensors.torch import save_file  # noqa: E402
from timm.models.deit import VisionTransformerDistilled  # noqa: E402
from timm.models.vision_transformer import VisionTransformer  # noqa: E402

SHAPE = {"img_size": (16, 12), "patch_size": 4, "in_chans": 3, "num_classes": 5, "embed_dim": 24, "depth": 2, "num_heads": 3}


def golden_model(prefix, seed, make, **options):
    torch.manual_seed(seed)
    model = make(**SHAPE, **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # far from the starting values: every term of the result shows
            parameter.add_(0.2 * torch.randn_like(parameter))
        images = torch.randn(3, 3, 16, 12)
        logits = model(images)
    tensors = {prefix + "weights/" + name: value for name, value in model.state_dict().items()}
    tensors[prefix + "images"] = images
    tensors[prefix + "logits"] = logits
    return tensors


if __name__ == "__main__":
    tensors = golden_model("qk_norm/", 11, VisionTransformer, qk_norm=True)
    tensors |= golden_model("distilled/", 12, VisionTransformerDistilled)
    tensors |= golden_model("map/", 13, VisionTransformer, class_token=False, global_pool="map")
    path = os.path.join(HERE, "vit_variants_golden.safetensors")
    metadata = {"made by": f"make_vit_variants_golden.py with timm {timm.__version__}, torch {torch.__version__}"}
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    print(path, os.path.getsize(path), "bytes")
