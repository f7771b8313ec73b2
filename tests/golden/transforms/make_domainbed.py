"""Makes domainbed_*.ppm: DomainBed's transforms of input.ppm by torchvision on Pillow's images, which is what DomainBed
runs, with what domainbed_cases.json has decided for each case. Made with Pillow 11.3.0 and torchvision 0.28.0.

    python tests/golden/transforms/make_domainbed.py
"""

import json
from pathlib import Path

from PIL import Image
from torchvision.transforms import functional

SIZE = [28, 28]
folder = Path(__file__).parent
JITTER = {
    "brightness": functional.adjust_brightness,
    "contrast": functional.adjust_contrast,
    "saturation": functional.adjust_saturation,
    "hue": functional.adjust_hue,
}


def cropped(picture, case):
    return functional.resized_crop(picture, case["top"], case["left"], case["height"], case["width"], SIZE)


def changed(picture, case):
    if case["mirrored"]:
        picture = functional.hflip(picture)
    for name, amount in case["jitter"]:
        picture = JITTER[name](picture, amount)
    return functional.rgb_to_grayscale(picture, num_output_channels=3) if case["grey"] else picture


def main():
    picture = Image.open(folder / "input.ppm")
    square = functional.resize(picture, SIZE)
    square.save(folder / "domainbed_test.ppm")
    cases = json.loads((folder / "domainbed_cases.json").read_text())
    for kind, start in (("photographs", picture), ("wilds", square)):
        for case in cases[kind]:
            crop = cropped(start, case)
            crop.save(folder / f"domainbed_{kind}_crop_{case['seed']}.ppm")
            changed(crop, case).save(folder / f"domainbed_{kind}_{case['seed']}.ppm")


main()
