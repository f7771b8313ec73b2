"""Makes tests/golden/images: small JPEG and PNG files and, for each, the pixels that Pillow reads from it (uint8 [C,H,W], npy).

    python tests/golden/make_images.py        (needs Pillow and NumPy; made with Pillow 13.0, NumPy 2.4)

The expected pixels are Pillow's own: exif_transpose() applied, alpha dropped by convert("RGB") or convert("L").
"""
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

FOLDER = pathlib.Path(__file__).parent / "images"
WIDTH, HEIGHT = 11, 7


def picture():
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    red, green, blue = 20 * x + 10, 30 * y + 5, 255 - 11 * (x + y)
    return np.stack([red, green, blue], -1).clip(0, 255).astype(np.uint8)


def expect(name, image, mode):
    pixels = np.asarray(ImageOps.exif_transpose(image).convert(mode))
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    np.save(FOLDER / f"{name}.npy", np.ascontiguousarray(pixels))


def save(name, image, mode="RGB", **options):
    image.save(FOLDER / name, **options)
    expect(name, Image.open(FOLDER / name), mode)


def png_chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def save_png_by_hand(name, depth, colour, rows, expected):
    """For kinds of PNG that Pillow does not write; the expected pixels are given."""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, colour, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    file = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", body) + png_chunk(b"IEND", b"")
    (FOLDER / name).write_bytes(file)
    np.save(FOLDER / f"{name}.npy", np.ascontiguousarray(expected))


def save_offset_gif(name):
    """A picture that fills a part of its canvas; what is outside it is black."""
    small = Image.fromarray(picture()[:3, :4]).quantize(8)
    small.save(FOLDER / name)
    file = bytearray((FOLDER / name).read_bytes())
    file[6:10] = struct.pack("<HH", WIDTH, HEIGHT)
    at = file.index(b",", 13 + 3 * (2 << (file[10] & 7)))  # the image descriptor
    file[at + 1:at + 5] = struct.pack("<HH", 2, 1)
    (FOLDER / name).write_bytes(bytes(file))
    expected = np.zeros((3, HEIGHT, WIDTH), np.uint8)
    expected[:, 1:4, 2:6] = np.asarray(small.convert("RGB")).transpose(2, 0, 1)
    np.save(FOLDER / f"{name}.npy", expected)


def main():
    FOLDER.mkdir(exist_ok=True)
    rgb = Image.fromarray(picture())
    grey = rgb.convert("L")
    save("grey.jpg", grey, "L", quality=90)
    save("rgb.jpg", rgb, quality=90)
    save("rgb444.jpg", rgb, quality=95, subsampling=0)
    save("progressive.jpg", rgb, quality=90, progressive=True)
    save("cmyk.jpg", rgb.convert("CMYK"), quality=95)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        save(f"exif{orientation}.jpg", rgb, quality=95, subsampling=0, exif=exif.tobytes())
    save("exif8.png", rgb, exif=exif.tobytes())

    save("grey.png", grey, "L")
    save("rgb.png", rgb)
    alpha = Image.fromarray((np.arange(WIDTH * HEIGHT) * 3 % 256).astype(np.uint8).reshape(HEIGHT, WIDTH))
    rgba = rgb.copy()
    rgba.putalpha(alpha)
    save("rgba.png", rgba)
    grey_alpha = grey.copy()
    grey_alpha.putalpha(alpha)
    save("grey_alpha.png", grey_alpha, "L")
    save("palette.png", rgb.quantize(16))
    save("palette_transparent.png", rgb.quantize(16), transparency=3)
    save("one_bit.png", grey.point(lambda v: 255 * (v > 128)).convert("1"), "L")

    save("rgb.webp", rgb, quality=80)
    save("lossless.webp", rgb, lossless=True)
    save("alpha.webp", rgba, lossless=True, exact=True)
    exif[0x0112] = 6
    save("exif6.webp", rgb, lossless=True, exif=exif.tobytes())
    save("rgb.gif", rgb)
    save("interlaced.gif", rgb, interlace=1)
    save("animated.gif", rgb.quantize(8), save_all=True, append_images=[grey])
    save_offset_gif("offset.gif")
    save("rgb.bmp", rgb)
    save("grey.bmp", grey)
    save("palette.bmp", rgb.quantize(16))
    save("one_bit.bmp", grey.point(lambda v: 255 * (v > 128)).convert("1"))
    save("rgba.bmp", rgba)
    save("rgb.tif", rgb)
    save("grey.tif", grey, "L")
    save("packed.tif", rgb, compression="tiff_adobe_deflate")
    save("palette.tif", rgb.quantize(16))
    save("one_bit.tif", grey.point(lambda v: 255 * (v > 128)).convert("1"), "L")
    save("exif6.tif", rgb, tiffinfo={0x0112: 6})

    # 16 bits: the value v becomes round(v / 257), PNG specification, section 13.12 "Sample depth rescaling".
    deep = (picture().astype(np.uint32) * 257 + 100).clip(0, 65535).astype(np.uint16)
    rounded = ((deep.astype(np.uint32) + 128) // 257).astype(np.uint8)
    save_png_by_hand("rgb16.png", 16, 2, [row.astype(">u2") for row in deep], rounded.transpose(2, 0, 1))
    save_png_by_hand("grey16.png", 16, 0, [row[:, 0].astype(">u2") for row in deep], rounded[None, :, :, 0])


if __name__ == "__main__":
    main()
