"""Writes the page as one file: write_page.py PAGE MODULE.js. The compiled library beside MODULE.js goes in compressed."""
import base64
import gzip
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
SHARED = FOLDER.parents[1] / "sparsight/serve/page"  # with the page of `sparsight serve`


def main(page, module):
    wasm = gzip.compress(module.with_suffix(".wasm").read_bytes(), compresslevel=9, mtime=0)
    files = [FOLDER / "page.css", FOLDER / "library.js", SHARED / "patches.js", FOLDER / "page.js"]
    parts = {file.name: file.read_text() for file in files}
    parts["sparsight_web.js"] = module.read_text() + f'\nconst SPARSIGHT_WASM = "{base64.b64encode(wasm).decode()}";\n'
    text = (FOLDER / "page.html").read_text()
    for name, part in parts.items():
        if "</script" in part or "</style" in part:
            sys.exit(f"error: {name} would end its element in the page; write the tag in two pieces")
        text = text.replace(f"/* {name} */", f"\n{part}")
    page.write_text(text)


main(*map(pathlib.Path, sys.argv[1:]))
