"""Writes sparsight/data/imagenet_labels.inc, the names of ImageNet's 1,000 classes, from an installed torchvision, whose
`torchvision.models._meta` has them in the order of the outputs of its models.

    python tools/make_imagenet_labels.py            prints the file
    python tools/make_imagenet_labels.py --check    exits with 1 if the repository's differs, 77 without torchvision
"""
import ast
import importlib.util
import pathlib
import sys

FILE = pathlib.Path(__file__).resolve().parents[1] / "sparsight/data/imagenet_labels.inc"
WIDTH = 120


def categories():
    """The list, read without importing torchvision, which may be built for another torch. None: not installed."""
    package = importlib.util.find_spec("torchvision")
    if package is None:
        return None
    tree = ast.parse((pathlib.Path(package.origin).parent / "models/_meta.py").read_text())
    return next(ast.literal_eval(node.value) for node in tree.body
                if isinstance(node, ast.Assign) and node.targets[0].id == "_IMAGENET_CATEGORIES")


def to_text(names):
    assert len(names) == 1000 and not any('"' in name or ";" in name or "\\" in name for name in names)
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) + 3 > WIDTH:
            lines.append(f'"{line}"')
            line = ""
        line += name + ";"
    return "\n".join([*lines, f'"{line}"']) + "\n"


if __name__ == "__main__":
    names = categories()
    if names is None:
        print("needs torchvision (pip install --no-deps torchvision==0.28.0)")
        sys.exit(77)
    if sys.argv[1:] == ["--check"]:
        same = FILE.read_text() == to_text(names)
        print(f"{FILE} has torchvision's names" if same else f"{FILE} differs from torchvision's names: write it again")
        sys.exit(0 if same else 1)
    sys.stdout.write(to_text(names))
