"""Makes vit_golden.safetensors, the expected outputs of Sparsight's ViT, with timm
(https://github.com/huggingface/pytorch-image-models).

Two tiny vision transformers (class token, mean pooling) with random weights: parameters under timm's names, input images and
logits; and a position embedding resampled by timm. Run it in an environment of its own:

    pip install torch timm safetensors && python tests/golden/make_vit_golden.py

The committed file came from timm 1.0.31 and torch 2.13.0.
"""

import os

import timm
import torch
from safetensors.torch import save_file
from timm.layers import resample_abs_pos_embed
from timm.models.vision_transformer import VisionTransformer

SHAPE = dict(img_size=(16, 12), patch_size=4, in_chans=3, num_classes=5, embed_dim=24, depth=2, num_heads=3)


def golden_model(prefix, seed, **options):
    torch.manual_seed(seed)
    model = VisionTransformer(**SHAPE, **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # far from the starting values: every term of the result shows
            parameter.add_(0.2 * torch.randn_like(parameter))
        images = torch.randn(3, 3, 16, 12)
        logits = model(images)
    tensors = {prefix + "weights/" + name: value for name, value in model.state_dict().items()}
    tensors[prefix + "images"] = images
    tensors[prefix + "logits"] = logits
    return tensors


def golden_resampling():
    torch.manual_seed(3)
    embedding = torch.randn(1, 1 + 4 * 4, 6)
    larger = resample_abs_pos_embed(embedding, new_size=[7, 5], old_size=[4, 4], num_prefix_tokens=1)
    smaller = resample_abs_pos_embed(embedding, new_size=[2, 3], old_size=[4, 4], num_prefix_tokens=1)
    return {"resample/4x4": embedding, "resample/7x5": larger, "resample/2x3": smaller}


if __name__ == "__main__":
    tensors = golden_model("class/", 1)
    tensors |= golden_model("mean/", 2, class_token=False, global_pool="avg")
    tensors |= golden_resampling()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vit_golden.safetensors")
    metadata = {"made by": f"make_vit_golden.py with timm {timm.__version__}, torch {torch.__version__}"}
    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata)
    print(path, os.path.getsize(path), "bytes")
