"""Writes python.safetensors with the safetensors package: pip install safetensors torch numpy."""
import pathlib

import torch
from safetensors.torch import save_file

TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
         torch.float16, torch.bfloat16, torch.float32, torch.float64]
tensors = {str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in TYPES}
save_file(tensors, pathlib.Path(__file__).parent / "python.safetensors", metadata={"made_by": "python"})
