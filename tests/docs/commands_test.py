"""Runs the commands of the documentation: every ```bash block of README.md and docs/, checks every ```toml block, and
runs the ```python blocks of a page one after the other, as one program.

The blocks run in one scratch folder, page after page, with the built program on the PATH and synthetic substitutes for the reader's
own files. Configurations are cut to a few steps, figures to their smallest scale without data. Left out are blocks with ./dev, one of which runs this test, and those that
install the library: tests/e2e/install_test.sh, own_router_page_test.sh and tests/python/install_test.sh do what they say.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["SPARSIGHT_PROGRAM"]).resolve()
PACKAGE = pathlib.Path(os.environ.get("BUILD", "build/release")).resolve() / "python"
SMALLER = {"train": 320, "validation": 64, "test": 64, "epochs": 1}  # what the demo's settings become


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)


def pages():
    """README.md, then training.md, which makes the run that other pages use, then the rest."""
    rest = sorted((ROOT / "docs").rglob("*.md"), key=lambda page: (page.name != "training.md", page.name))
    return [ROOT / "README.md", *rest]


def smaller(config):
    for key, value in SMALLER.items():
        config = re.sub(rf"^{key} = \d+$", f"{key} = {value}", config, flags=re.M)
    return config


def short_attack(line):
    """A few images and steps, with settings that the line's attacks have."""
    if "sparsight attack" not in line:
        return line
    line = line.rstrip() + " --images 6"
    if "--attack" not in line:
        line += " --set attack.steps=2" + ("" if "version=rand" in line else " --set attack.queries=5 --set attack.targets=2")
    return line


def short_generalisation(line):
    """Two steps."""
    return re.sub(r"--steps \d+", "--steps 2 --eval-every 1", line) if "sparsight dg" in line else line


def short_demo(line):
    """Few images, beside the run that other pages use."""
    settings = "".join(f" --set data.{key}={value}" for key, value in SMALLER.items() if key != "epochs")
    return re.sub(r"sparsight demo(?= )", f"sparsight demo --out runs/installed{settings}", line)


def smallest(command):
    command = "\n".join(map(short_demo, command.split("\n")))
    command = "\n".join(map(short_attack, command.split("\n")))
    command = "\n".join(map(short_generalisation, command.split("\n")))
    command = re.sub(r"--scale \w+", "--scale smoke", command)
    command = re.sub(r"(sparsight reproduce .*?) --(?:data \S+|synthetic)", r"\1", command)
    figure = r"(sparsight reproduce (?:pmoe|gmoe|mobile_vmoe|robust_moe)/\S+)"
    command = re.sub(figure + r"(?!.* --scale)", r"\1 --scale smoke", command)
    return re.sub(figure, r"\1 --synthetic", command)


def run(command, folder):
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    environment.pop("SPARSIGHT_DATA", None)
    return subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run_python(page, folder):
    """The page's ```python blocks with the built package; None where there are none, or it or a package is missing."""
    program = "".join(blocks(page, "python"))
    if not program or not (PACKAGE / "sparsight/_ops.so").exists():
        return None
    imported = set(re.findall(r"^(?:import|from) (\w+)", program, re.M)) - {"sparsight"}
    if missing := [name for name in sorted(imported) if importlib.util.find_spec(name) is None]:
        print(f"{page.name}: its python blocks are not run, since {', '.join(missing)} cannot be imported")
        return None
    (folder / "page.py").write_text(program)
    return subprocess.run([sys.executable, "page.py"], cwd=folder, env={**os.environ, "PYTHONPATH": str(PACKAGE)}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def prepare(folder):
    """The files that the pages assume: configs/, and a reader's own images."""
    for config in (ROOT / "configs").rglob("*.toml"):
        copy = folder / config.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(smaller(config.read_text()))
    made = run("sparsight data make pictures --layout class --set side=32 --set classes=12 --set train=48 "
               "--set validation=12 --set test=12 --quiet", folder)
    assert made.returncode == 0, made.stdout
    picture = next((folder / "pictures/test").rglob("*.png"))
    for name in ("photo.png", "cat.png", "picture.png"):
        shutil.copy(picture, folder / name)
    for name in ("photos", "path/to/images"):
        shutil.copytree(folder / "pictures", folder / name)


def main():
    failures, counted = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        prepare(folder)
        for page in pages():
            name = page.relative_to(ROOT)
            for block in blocks(page, "bash"):
                if any(words in block for words in ("./dev", "cmake --install", "my_router/build", "pip install")):
                    continue
                result = run(smallest(re.sub(r"^alias .*$", "", block, flags=re.M)), folder)
                counted += 1
                if result.returncode != 0:
                    failures.append(f"{name}:\n{block}ends with {result.returncode}:\n{result.stdout[-2000:]}")
            for block in blocks(page, "toml"):
                (folder / "page.toml").write_text(block)
                result = run("sparsight config show page.toml", folder)  # some data is not here
                counted += 1
                if result.returncode != 0:
                    failures.append(f"{name}:\n{block}is refused:\n{result.stdout}")
            if (result := run_python(page, folder)) is not None:
                counted += 1
                if result.returncode != 0:
                    failures.append(f"{name}: its python blocks end with {result.returncode}:\n{result.stdout[-2000:]}")
    assert counted > 5, f"only {counted} blocks were found"
    print("\n".join(failures) if failures else f"{counted} blocks run")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
