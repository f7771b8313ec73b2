"""PEP 517 backend for `pip install .`: CMake builds the package, this module packs it into a wheel.

pip isolates builds: packages of the environment, including torch, are hidden from the build, and a build requirement
on torch would download a second copy. Torch is therefore located with the environment's own interpreter, outside the
isolation.

Settings (`pip install . -C name=value`):
  build-dir  existing CMake build to use, such as build/release after `./dev test`; default: build/python
  jobs       parallel compile jobs; default: as many as cores and memory allow
"""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = "Sparse mixture-of-experts layers for PyTorch, fast on a CPU"
FIND_TORCH = """
import importlib.util, pathlib
spec = importlib.util.find_spec("torch")
print(pathlib.Path(spec.submodule_search_locations[0]) if spec else "")
"""


class BuildError(Exception):
    """A build failure that the user can fix; pip prints the message last."""


def version():
    return re.search(r"project\(sparsight VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def torch_root():
    # -E: pip hides the environment with PYTHON* variables.
    found = subprocess.run([sys.executable, "-E", "-c", FIND_TORCH], text=True, capture_output=True).stdout.strip()
    if not found:
        raise BuildError(f"sparsight needs torch 2.11 or newer in the environment of {sys.executable}: pip install torch")
    return pathlib.Path(found)


def torch_version(root):
    return re.search(r"__version__ = '([^']+)'", (root / "version.py").read_text())[1]


def jobs(settings):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return int(settings.get("jobs") or max(1, min(os.cpu_count() or 1, int(memory / 2))))


def run(command):
    print("+", " ".join(map(str, command)), flush=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if subprocess.run([str(part) for part in command], env=environment).returncode != 0:
        raise BuildError("the build failed, see the messages above; run ./dev doctor to list missing packages")


def build(settings):
    """Returns the folder of the package and the root of the torch that it is built for."""
    torch = torch_root()
    if shutil.which("cmake") is None:
        raise BuildError("cmake is missing; run ./dev doctor to list what a build needs")
    folder = pathlib.Path(settings.get("build-dir") or ROOT / "build/python").resolve()
    cache = folder / "CMakeCache.txt"
    if settings.get("build-dir"):
        known = re.search(r"^SPARSIGHT_FOUND_TORCH_ROOT:INTERNAL=(.*)$", cache.read_text() if cache.exists() else "", re.M)
        if not known or pathlib.Path(known[1]).resolve() != torch.resolve():
            raise BuildError(f"{folder} was not built against {torch}; omit build-dir")
    else:
        generator = ["-G", "Ninja"] if shutil.which("ninja") and not cache.exists() else []
        run(["cmake", "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", f"-DSPARSIGHT_TORCH_ROOT={torch}",
             "-DSPARSIGHT_BUILD_PYTHON=ON", "-DSPARSIGHT_BUILD_CLI=OFF", "-DSPARSIGHT_BUILD_TESTS=OFF",
             "-DSPARSIGHT_UNITY=ON", "-DSPARSIGHT_DECODE_IMAGES=OFF",
             "-DSPARSIGHT_FOLDERS=core;kernels;engine;cost;ops;dist;nn;moe"])
    run(["cmake", "--build", folder, "--target", "sparsight_python", "-j", jobs(settings)])
    return folder / "python/sparsight", torch


def metadata(torch):
    release = ".".join(torch_version(torch).split(".")[:2])
    return (f"Metadata-Version: 2.1\nName: sparsight\nVersion: {version()}\nSummary: {SUMMARY}\nLicense: Apache-2.0\n"
            f"Requires-Python: >=3.10\nRequires-Dist: torch=={release}.*\nDescription-Content-Type: text/markdown\n\n"
            + (ROOT / "docs/python.md").read_text())


def tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def information(torch):
    """The files of the dist-info folder, except RECORD."""
    return {"METADATA": metadata(torch).encode(),
            "WHEEL": f"Wheel-Version: 1.0\nGenerator: sparsight\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode(),
            "LICENSE": (ROOT / "LICENSE").read_bytes()}


def dist_info():
    return f"sparsight-{version()}.dist-info"


def or_exit(work):
    """Exits with a one-line message on BuildError; pip prints the last line of a failed build."""
    try:
        return work()
    except BuildError as error:
        sys.exit(f"error: {error}")


def pack(path, files):
    """files: {name in the wheel: bytes}. Adds RECORD, which lists them with their hashes."""
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            wheel.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        wheel.writestr(f"{dist_info()}/RECORD", "\n".join([*lines, f"{dist_info()}/RECORD,,", ""]))


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory) / dist_info()
    folder.mkdir()
    for name, content in information(or_exit(torch_root)).items():
        (folder / name).write_bytes(content)
    return folder.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package, torch = or_exit(lambda: build(config_settings or {}))
    files = {f"sparsight/{path.name}": path.read_bytes() for path in sorted(package.iterdir()) if path.is_file()}
    files.update({f"{dist_info()}/{name}": content for name, content in information(torch).items()})
    name = f"sparsight-{version()}-{tag()}.whl"
    pack(pathlib.Path(wheel_directory) / name, files)
    return name
