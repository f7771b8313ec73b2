"""The torch that a wheel of this repository is built for: a provider of metadata for scikit-build-core, and a program
that prints the folder of that torch, for CMake (cmake/SparsightTorch.cmake).

It is the torch of the environment that pip installs into, or of SPARSIGHT_PYTHON. pip isolates builds: the packages of
the environment are hidden from the build, and a requirement of the build on torch would download a second one.
"""
import os
import pathlib
import re
import subprocess
import sys

FIND_TORCH = """
import importlib.util, pathlib
spec = importlib.util.find_spec("torch")
print(pathlib.Path(spec.submodule_search_locations[0]) if spec else "")
"""


def torch_root():
    python = os.environ.get("SPARSIGHT_PYTHON") or sys.executable
    for isolated in ([], ["-E"]):  # -E: pip hides the environment with PYTHON* variables
        found = subprocess.run([python, *isolated, "-c", FIND_TORCH], text=True, capture_output=True).stdout.strip()
        if found:
            return pathlib.Path(found)
    sys.exit(f"error: sparsight needs torch 2.11 or newer in the environment of {python}: pip install torch there, or "
             "set SPARSIGHT_PYTHON to the interpreter of an environment that has it")


def torch_release():
    """The version that programs of the wheel run with: torch keeps its binary interface within a minor version."""
    version = re.search(r"__version__ = '([^']+)'", (torch_root() / "version.py").read_text())[1]
    return ".".join(version.split(".")[:2])


class Dependencies:
    def build_state(self, state):
        self.state = state

    def dynamic_metadata(self, settings, project):
        # The source distribution is for every torch.
        return {"dependencies": ["torch>=2.11,<2.14" if self.state == "sdist" else f"torch=={torch_release()}.*"]}

    def dynamic_wheel(self, settings):
        return {"dependencies": True}


if __name__ == "__main__":
    print(torch_root())
