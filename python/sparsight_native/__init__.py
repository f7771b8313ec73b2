"""What is compiled: the program `sparsight`, and the C++ library with its headers and CMake package.

    python -c "import sparsight_native; print(sparsight_native.prefix())"     # for -DCMAKE_PREFIX_PATH=

This package does not import torch, so that the command `sparsight` answers at once.
"""
import importlib.util
import os
import pathlib
import re
import sys


def prefix():
    """The folder that has bin/, libexec/, lib/ and include/, as `cmake --install` makes them."""
    folders = [pathlib.Path(folder) for folder in __path__]  # an editable installation has two
    for folder in folders:
        if (folder / "bin/sparsight").exists():
            return folder
    sys.exit(f"error: the program is missing in {folders[0]}; reinstall it with "
             "`pip install --force-reinstall --no-deps sparsight`")


def _torch_library(program_prefix):
    """The folder of libtorch in this environment, whose torch must be the one that the program was built for."""
    built_for = (program_prefix / "torch_release").read_text().strip()
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"error: sparsight needs torch {built_for}, and this environment has none: pip install "
                 f"'torch=={built_for}.*'")
    torch = pathlib.Path(spec.submodule_search_locations[0])
    version = re.search(r"__version__ = '([^']+)'", (torch / "version.py").read_text())[1]
    if not version.startswith(built_for + "."):
        sys.exit(f"error: this sparsight was built for torch {built_for}, and the environment has {version}: reinstall "
                 f"sparsight, or pip install 'torch=={built_for}.*'")
    return torch / "lib"


def main():
    """Becomes the compiled program."""
    root = prefix()
    library = _torch_library(root)
    environment = dict(os.environ)
    # The program looks for libtorch beside this package. Another place is possible: a virtual environment with the
    # packages of the system, or packages of the user.
    if not (root.parent / "torch/lib/libtorch_cpu.so").exists():
        paths = [str(library), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
    os.execve(root / "bin/sparsight", ["sparsight", *sys.argv[1:]], environment)
