"""Makes the pictures of this folder, what the public package imagecorruptions 1.1.2 (pixelate: Pillow) makes of an
input, and changes.json: by how many levels its random corruptions change a smooth picture, on average over draws, with
the standard error. The package's elastic_transform is another one than ImageNet-C's, which is written here with OpenCV
and SciPy. Made with numpy 2.4.6, scipy 1.17.1, scikit-image 0.26.0, opencv-python-headless 5.0.0.93 and Pillow 13.0.0.

    python tests/golden/corruptions/make_corruptions.py
"""
import json
import sys
import types
from pathlib import Path

import cv2
import numpy as np
import scipy.ndimage
import skimage.filters
from PIL import Image

# What the package still expects of older versions of its libraries.
np.float_ = np.float64
sys.modules["scipy.ndimage.interpolation"] = types.SimpleNamespace(map_coordinates=scipy.ndimage.map_coordinates)
plain_gaussian = skimage.filters.gaussian
skimage.filters.gaussian = lambda image, sigma, multichannel=False, **more: plain_gaussian(
    image, sigma=sigma, channel_axis=-1 if multichannel else None, **more)

from imagecorruptions import corruptions  # noqa: E402

DRAWS, SIDE = 40, 244
folder = Path(__file__).parent
picture = Image.open(folder.parent / "transforms" / "input.ppm")


def save(name, pixels):
    Image.fromarray(np.uint8(pixels)).save(folder / f"{name}.ppm")


for severity, share in ((1, 0.6), (3, 0.4), (5, 0.25)):  # ImageNet-C's own code; the package enlarges to nearest pixels
    small = picture.resize((int(picture.width * share), int(picture.height * share)), Image.Resampling.BOX)
    save(f"pixelate_{severity}", small.resize(picture.size, Image.Resampling.BOX))
for kind in ("defocus_blur", "zoom_blur", "brightness", "contrast", "jpeg_compression"):
    for severity in (1, 3, 5):
        save(f"{kind}_{severity}", np.array(getattr(corruptions, kind)(picture, severity)))
for angle in (-40, 10, 100):
    save(f"motion_blur_{angle}", np.clip(corruptions._motion_blur(np.array(picture), radius=10, sigma=3, angle=angle), 0, 255))

# Hendrycks and Dietterich 2019: an affine map that moves three corners, then smooth moves of each pixel.
MOVE, SMOOTH, CORNER = (2, 2, .05, .07, .12), (.7, .08, .01, .01, .01), (.1, .2, .02, .02, .02)


def elastic_transform(image, severity):
    pixels = np.array(image, dtype=np.float32)
    height, width, side = *pixels.shape[:2], SIDE * 244 / 224
    move, smooth, corner = (values[severity - 1] * side for values in (MOVE, SMOOTH, CORNER))
    middle, third = np.float32((height, width)) // 2, min(height, width) // 3
    corners = np.float32([middle + third, [middle[0] + third, middle[1] - third], middle - third])
    moved = corners + np.random.uniform(-corner, corner, size=corners.shape).astype(np.float32)
    pixels = cv2.warpAffine(pixels, cv2.getAffineTransform(corners, moved), (width, height),
                            borderMode=cv2.BORDER_REFLECT_101)
    down, across = (scipy.ndimage.gaussian_filter(np.random.uniform(-1, 1, (height, width)), smooth, mode="reflect",
                                                  truncate=3) * move for _ in range(2))
    rows, columns = np.mgrid[0:height, 0:width]
    return np.stack([scipy.ndimage.map_coordinates(pixels[..., c], [rows + down, columns + across], order=1,
                                                   mode="reflect") for c in range(3)], 2)


np.random.seed(0)
y, x = np.mgrid[0:SIDE, 0:SIDE]
smooth = np.stack([128 + 100 * np.sin(x / 9 + c) * np.cos(y / 13 - c) for c in range(3)], 2)
smooth = np.uint8(np.floor(smooth))
changes = {}
for kind in ("gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur", "snow", "fog",
             "elastic_transform"):
    corrupt = elastic_transform if kind == "elastic_transform" else getattr(corruptions, kind)
    for severity in (1, 3, 5):
        draws = [np.abs(np.uint8(corrupt(Image.fromarray(smooth), severity)).astype(float) - smooth).mean()
                 for _ in range(4 if kind == "glass_blur" else DRAWS)]
        changes[f"{kind}_{severity}"] = [round(float(np.mean(draws)), 4),
                                         round(float(np.std(draws, ddof=1) / np.sqrt(len(draws))), 4)]
(folder / "changes.json").write_text(json.dumps(changes, indent=1) + "\n")
