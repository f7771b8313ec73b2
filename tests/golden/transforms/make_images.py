"""Makes the pictures of this folder: an input and what Pillow and torchvision make of it. Made with Pillow 11.3.0 (from
13.0 on, Pillow resizes along y first where that is faster), torchvision 0.28.0 and numpy 2.4.6.

    python tests/golden/transforms/make_images.py
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from torchvision.transforms import functional

folder = Path(__file__).parent
rng = np.random.default_rng(0)
y, x = np.mgrid[0:40, 0:48]
planes = [128 + 100 * np.sin(x / 5 + c) * np.cos(y / 7 - c) + rng.normal(0, 25, x.shape) for c in range(3)]
picture = Image.fromarray(np.clip(np.stack(planes, 2), 0, 255).astype(np.uint8))
picture.save(folder / "input.ppm")
grey = picture.convert("L")
grey.save(folder / "grey.pgm")

for name, filter in (("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)):
    for height, width in ((13, 17), (20, 24), (64, 72), (7, 48), (40, 90), (12, 90), (1, 1)):
        picture.resize((width, height), filter).save(folder / f"{name}_{height}x{width}.ppm")
    grey.resize((17, 13), filter).save(folder / f"{name}_13x17.pgm")

for name, enhance in (("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast),
                      ("saturation", ImageEnhance.Color), ("sharpness", ImageEnhance.Sharpness)):
    for factor in (0.3, 1.7):
        enhance(picture).enhance(factor).save(folder / f"{name}_{factor}.ppm")
for shift in (-0.3, -0.1, 0.2, 0.5):
    functional.adjust_hue(picture, shift).save(folder / f"hue_{shift}.ppm")
dull = picture.point(lambda level: 60 + level // 3)
dull.save(folder / "dull.ppm")
ImageOps.autocontrast(dull).save(folder / "autocontrast.ppm")
ImageOps.equalize(dull).save(folder / "equalize.ppm")
ImageOps.posterize(picture, 3).save(folder / "posterize.ppm")
ImageOps.solarize(picture, 100).save(folder / "solarize.ppm")
