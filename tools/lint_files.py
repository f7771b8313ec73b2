"""Prints the files for clang-tidy, one per line with a key that changes when the file, a project header that it
includes (directly or not) or the settings change.

Usage: lint_files.py BUILD_FOLDER     (holds compile_commands.json; run from the project's root)

Files that use torch's module headers are left out: they cost a minute each.
"""
import functools
import hashlib
import json
import pathlib
import re
import sys

FOLDERS = ("sparsight/", "runtime/", "cli/", "tests/support/")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
MODULE_HEADERS = re.compile(r"[<\"]torch/(?!headeronly)")


@functools.cache
def file_text(path):
    return pathlib.Path(path).read_text()


def with_headers(path):
    """The file and every project header that it includes."""
    seen, waiting = set(), [path]
    while waiting:
        file = waiting.pop()
        if file not in seen and pathlib.Path(file).is_file():
            seen.add(file)
            waiting += INCLUDE.findall(file_text(file))
    return sorted(seen)


def main():
    root = pathlib.Path.cwd()
    commands = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    for path in sorted({str(pathlib.Path(command["file"]).relative_to(root)) for command in commands}):
        if not path.startswith(FOLDERS) or not path.endswith(".cpp"):
            continue
        own = [path] + [str(header) for header in [pathlib.Path(path).with_suffix(".h")] if header.is_file()]
        if any(MODULE_HEADERS.search(file_text(file)) for file in own):
            continue
        key = hashlib.sha256(b"\0".join(file_text(file).encode() for file in [*with_headers(path), ".clang-tidy"]))
        print(path, key.hexdigest()[:24])


if __name__ == "__main__":
    main()
