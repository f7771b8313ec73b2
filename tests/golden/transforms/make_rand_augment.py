"""Makes increasing.ppm and increasing_grey.pgm: timm's RandAugment operations of "rand-m9-mstd0.5-inc1" on Pillow's
images. The first 24 x 20 pixels of input.ppm, and their grey, go through each operation at each magnitude in both
directions; the results stand one below the other, in the order of the loops below. Made with timm 1.0.31 and Pillow
11.3.0 (later ones refuse to keep 0 bits, as posterize does at magnitude 10).

    python tests/golden/transforms/make_rand_augment.py
"""

import importlib.util
from pathlib import Path
from unittest import mock

import numpy as np
from PIL import Image

MAGNITUDES = (0, 3.7, 9, 10)
MEAN = (0.485, 0.456, 0.406)  # of ImageNet's pixels
FILL = tuple(min(255, round(255 * mean)) for mean in MEAN)  # as timm's create_transform has it
folder = Path(__file__).parent


def load(module):
    """A file of timm without the package, whose import needs torchvision."""
    source = Path(importlib.util.find_spec("timm").origin).parent / module
    spec = importlib.util.spec_from_file_location(source.stem, source)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def main():
    timm = load("data/auto_augment.py")
    picture = Image.open(folder / "input.ppm").crop((0, 0, 24, 20))
    for mode, fill, name in (("RGB", FILL, "increasing.ppm"), ("L", round(sum(FILL) / 3), "increasing_grey.pgm")):
        rows = []
        for operation in timm._RAND_INCREASING_TRANSFORMS:
            for magnitude in MAGNITUDES:
                for sample in (0.25, 0.75):  # timm negates above 0.5
                    op = timm.AugmentOp(operation, prob=1, magnitude=magnitude,
                                        hparams={"img_mean": fill, "interpolation": Image.Resampling.BICUBIC})
                    with mock.patch.object(timm.random, "random", return_value=sample):
                        rows.append(np.asarray(op(picture.convert(mode))))
        Image.fromarray(np.concatenate(rows)).save(folder / name)


main()
