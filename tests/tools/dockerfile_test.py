"""The Dockerfile without an engine: its instructions and their order, the stages and paths that it names, its shell
commands, and that what a build makes anew stays out of the context."""
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTRUCTIONS = {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "SHELL",
                "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}


def instructions(text):
    """(name, arguments) of each; a backslash at the end of a line continues it, comments are left out."""
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).split("\n"):
        if line.strip():
            name, _, arguments = line.strip().partition(" ")
            assert name in INSTRUCTIONS, f"{line}: {name} is no instruction"
            assert arguments.strip(), f"{line}: {name} has no arguments"
            yield name, arguments.strip()


def check_shell(command):
    subprocess.run(["sh", "-n", "-c", command], check=True)
    for verb in re.findall(r"\./dev ([\w-]+)", command):
        usage = subprocess.run(["bash", "dev", "help"], cwd=ROOT, text=True, capture_output=True, check=True).stdout
        assert re.search(rf"^  {verb} ", usage, re.M), f"{command}: ./dev help has no {verb}"


def check_packages(command):
    """What apt-get installs is in the package lists of this machine, if it has lists."""
    if not shutil.which("apt-cache"):
        return
    for installed in re.findall(r"apt-get install (.*?)(?:&&|$)", command):
        for package in re.findall(r"(?<=\s)[a-z0-9][a-z0-9.+-]+", installed):
            known = subprocess.run(["apt-cache", "madison", package], text=True, capture_output=True).stdout
            lists = subprocess.run(["apt-cache", "madison", "dpkg"], text=True, capture_output=True).stdout
            assert known or not lists, f"Debian has no package {package}"


def check_copy(arguments, stages, folders):
    """folders: those that commands of earlier stages wrote."""
    words = arguments.split()
    stage = next((word.removeprefix("--from=") for word in words if word.startswith("--from=")), None)
    sources = [word for word in words if not word.startswith("--")][:-1]
    assert sources, f"COPY {arguments}: it needs a source and a destination"
    for source in sources:
        if stage is None:
            assert (ROOT / source).exists(), f"COPY {arguments}: there is no {source}"
        else:
            assert stage in stages, f"COPY {arguments}: there is no stage {stage}"
            assert source.rstrip("/") in folders, f"COPY {arguments}: no command names {source}"


def main():
    stages, folders, found = [], set(), list(instructions((ROOT / "Dockerfile").read_text()))
    assert found[0][0] == "FROM", "the first instruction is FROM"
    for name, arguments in found:
        if name == "FROM":
            image = re.fullmatch(r"[\w./-]+:[\w.-]+(?: AS (\w+))?", arguments)
            assert image, f"FROM {arguments}: it needs a tag, and AS before the name of a stage"
            stages.append(image[1])
        elif name == "RUN":
            check_shell(arguments)
            check_packages(arguments)
            folders.update(re.findall(r"(?<=\s)/[\w/]+", arguments))
        elif name == "COPY":
            check_copy(arguments, stages[:-1], folders)
        elif name in ("CMD", "ENTRYPOINT"):
            assert re.fullmatch(r'\["[^"]+"(, "[^"]+")*\]', arguments), f"{name} {arguments}: use the form of a list"
    assert len(stages) == 2 and [name for name, _ in found].count("ENTRYPOINT") == 1
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    for path in ".venv", ".git", "build*", "runs":
        assert path in ignored, f".dockerignore lacks {path}"
    for path in "dev", "CMakeLists.txt", "sparsight", "cli", "configs", "docs", "cmake", "runtime", "third_party":
        assert path not in ignored and (ROOT / path).exists(), f"the build needs {path}"
    if shutil.which("hadolint"):
        subprocess.run(["hadolint", ROOT / "Dockerfile"], check=True)
    print(f"{len(found)} instructions in {len(stages)} stages")


main()
