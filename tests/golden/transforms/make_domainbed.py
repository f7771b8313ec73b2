"""Makes domainbed_*.ppm: DomainBed's transforms of input.ppm with what domainbed_cases.json has decided for each case.
Needs Pillow and numpy (made with 13.0). Pillow crops, resizes and changes brightness, contrast and saturation, as
torchvision does on its images; the hue is turned by Python's colorsys in floating point. (torchvision's Pillow path
rounds hue and saturation to 8 bits between; --rounded-hue prints how far that is from the pictures here.)

    python tests/golden/transforms/make_domainbed.py
"""

import colorsys
import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

SIZE = 28
folder = Path(__file__).parent
ENHANCE = {"brightness": ImageEnhance.Brightness, "contrast": ImageEnhance.Contrast, "saturation": ImageEnhance.Color}


def turn_hue(picture, shift):
    pixels = np.asarray(picture) / 255
    turned = np.empty_like(pixels)
    for index in np.ndindex(pixels.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*pixels[index])
        turned[index] = colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)
    return Image.fromarray(np.rint(turned * 255).astype(np.uint8))


def turn_rounded_hue(picture, shift):
    planes = np.asarray(picture.convert("HSV")).copy()
    planes[..., 0] += np.array(shift * 255).astype(np.int64).astype(np.uint8)
    return Image.fromarray(planes, "HSV").convert("RGB")


def cropped(picture, case):
    left, top = case["left"], case["top"]
    picture = picture.crop((left, top, left + case["width"], top + case["height"]))
    return picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR)


def changed(picture, case, turn):
    if case["mirrored"]:
        picture = ImageOps.mirror(picture)
    for name, amount in case["jitter"]:
        picture = turn(picture, amount) if name == "hue" else ENHANCE[name](picture).enhance(amount)
    return picture.convert("L").convert("RGB") if case["grey"] else picture


def main():
    picture = Image.open(folder / "input.ppm")
    square = picture.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    square.save(folder / "domainbed_test.ppm")
    cases = json.loads((folder / "domainbed_cases.json").read_text())
    for kind, start in (("photographs", picture), ("wilds", square)):
        for case in cases[kind]:
            crop = cropped(start, case)
            crop.save(folder / f"domainbed_{kind}_crop_{case['seed']}.ppm")
            exact = changed(crop, case, turn_hue)
            exact.save(folder / f"domainbed_{kind}_{case['seed']}.ppm")
            if "--rounded-hue" in sys.argv:
                rounded = changed(crop, case, turn_rounded_hue)
                print(kind, case["seed"], np.abs(np.asarray(exact, int) - np.asarray(rounded, int)).max())


main()
