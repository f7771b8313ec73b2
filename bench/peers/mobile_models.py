"""The models of mobile.py: random weights, as frozen files and as ONNX files."""

import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np

import runtimes

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADS = {(12, 384): 6, (12, 192): 3, (6, 64): 2}  # of the published sizes; of others, one for 64 numbers
CHECKED_IMAGES = 32
ROUTED_BLOCKS = 2


def multiply_adds(options, depth, width, routing):
    """Of one image. Tokens of the last block that the head does not read are not computed."""
    patches, hidden = (options.side // options.patch) ** 2, 4 * width
    tokens = patches + 1
    count = patches * 3 * options.patch**2 * width + width * options.classes
    for block in range(depth):
        last, routed = block + 1 == depth, routing == "mobile" and block >= depth - ROUTED_BLOCKS
        queries, mlp_tokens = 1 if last and not routed else tokens, 1 if last else tokens
        count += 2 * tokens * width**2 + 2 * queries * width**2  # keys and values; queries and their projection
        count += 2 * queries * tokens * width + 2 * mlp_tokens * width * hidden
    return count + (width * options.experts if routing == "mobile" else 0)


def make_package(build, folder):
    """The Python package with the library of that build."""
    library = build / "runtime/libsparsight_infer.so"
    if not library.exists():
        sys.exit(f"error: {library} is missing; build the target sparsight_infer_shared")
    shutil.copytree(ROOT / "python/infer/sparsight_infer", folder / "sparsight_infer")
    (folder / "sparsight_infer" / library.name).symlink_to(library.resolve())


class Models:
    """Files of the models, in a folder of their own."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.shape = [3, options.side, options.side]
        for needed in ("tests/sparsight_write_small_vit", "runtime/sparsight-run"):
            if not (options.build / needed).exists():
                sys.exit(
                    f"error: {options.build / needed} is missing; build the targets sparsight_run and "
                    "sparsight_write_small_vit"
                )
        make_package(options.build, self.folder / "package")

    def write(self, size, routing):
        """The folder of a model with its files, pixels and our logits of them."""
        folder = self.folder / f"{size}_{routing}"
        if folder.exists():
            return folder
        folder.mkdir()
        depth, width = (int(part) for part in size.split("x"))
        options, command = self.options, [self.options.build / "tests/sparsight_write_small_vit"]
        heads = HEADS.get((depth, width), max(1, width // 64))
        for name in sorted({"fp32", *options.types}):
            given = dict(
                side=options.side,
                patch=options.patch,
                classes=options.classes,
                depth=depth,
                width=width,
                heads=heads,
                routed=ROUTED_BLOCKS if routing == "mobile" else 0,
                experts=options.experts,
                k=1,
                type=name,
            )
            flags = [text for key, value in given.items() for text in ("--" + key, str(value))]
            flags += ["--shared-router"] + (["--onnx", folder / "model.onnx"] if name == "fp32" else [])
            subprocess.run([*command, folder / f"{name}.sparsight", *flags], check=True)
        pixels = runtimes.make_images(max(CHECKED_IMAGES, *options.batch), self.shape, seed=1)
        np.save(folder / "pixels.npy", pixels)
        np.save(folder / "expected.npy", runtimes.ours(self.case(size, routing, "fp32", 1, 1))(pixels))
        return folder

    def case(self, size, routing, type_name, batch, threads, **more):
        folder = self.write(size, routing)
        return dict(
            package=str(self.folder / "package"),
            folder=str(folder),
            frozen=str(folder / f"{type_name}.sparsight"),
            onnx=str(folder / "model.onnx"),
            routing=routing,
            type=type_name,
            batch=batch,
            threads=threads,
            shape=self.shape,
            **more,
        )


def write_png(path, side):
    """An RGB image of random bytes."""
    rows = np.random.default_rng(1).integers(0, 256, (side, 3 * side), np.uint8)
    content = zlib.compress(np.pad(rows, ((0, 0), (1, 0))).tobytes())
    chunk = (
        lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    )  # noqa: E731
    header = struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b""))
