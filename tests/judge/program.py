"""Weights of other packages through the program, on random images: `train --init-from` at a learning rate of 0, then
`eval --records`."""
import os
import subprocess
import sys

import numpy as np
import torch
from PIL import Image

try:
    import safetensors.numpy
except ModuleNotFoundError:
    print("needs safetensors (pip install safetensors)")
    sys.exit(77)

PROGRAM = os.environ["SPARSIGHT_PROGRAM"]
CLASSES, IMAGES, MEAN, STD = 5, 4, (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
CONFIG = """
[data]
name = "folder"
root = "{folder}/images"

[transforms]
train = [{{op = "normalize", mean = {mean}, std = {std}}}]
eval = [{{op = "normalize", mean = {mean}, std = {std}}}]

[loader]
batch = 4
workers = 0

[model]
{model}

[optimizer]
name = "sgd"
lr = 0

[train]
epochs = 1
"""


def write_images(folder, side, generator):
    for split in ("train", "val", "test"):
        for label in range(CLASSES):
            os.makedirs(f"{folder}/images/{split}/class{label}")
            for i in range(IMAGES):
                pixels = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(f"{folder}/images/{split}/class{label}/{i}.png")


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def program_logits(folder, model, weights):
    """The logits of the test images, in the order of classes and files. model: the settings of the section."""
    with open(f"{folder}/config.toml", "w") as file:
        file.write(CONFIG.format(folder=folder, mean=list(MEAN), std=list(STD), model=model))
    torch.save(weights, f"{folder}/weights.pt")
    run("train", f"{folder}/config.toml", "--out", f"{folder}/run", "--init-from", f"{folder}/weights.pt")
    run("eval", f"{folder}/run", "--records", f"{folder}/records")
    return torch.from_numpy(safetensors.numpy.load_file(f"{folder}/records/records.safetensors")["logits"])


def package_logits(folder, model):
    images = [np.asarray(Image.open(f"{folder}/images/test/class{label}/{i}.png")) for label in range(CLASSES) for i in range(IMAGES)]
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    with torch.no_grad():
        return model((pixels - mean) / std)
