"""The workflows of .github/: YAML that follows GitHub's grammar as far as they use it, and every command that they run
exists here. actionlint, where it is installed, checks the rest."""
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github/workflows"
WORKFLOW_KEYS = {"name", True, "permissions", "concurrency", "env", "jobs"}  # YAML 1.1 reads the key `on` as true
JOB_KEYS = {"runs-on", "container", "timeout-minutes", "needs", "if", "env", "permissions", "strategy", "steps"}
STEP_KEYS = {"name", "uses", "with", "run", "env", "if"}
# Programs of the runners; `sparsight` is installed by a step before.
PROGRAMS = {"pip", "python", "gh", "sparsight"}


def dev_verbs():
    usage = subprocess.run(["bash", "dev", "help"], cwd=ROOT, text=True, capture_output=True, check=True).stdout
    return set(re.findall(r"^  ([a-z][\w-]*) ", usage, re.M))


def program_verbs():
    program = os.environ.get("SPARSIGHT_PROGRAM")
    if not program or not pathlib.Path(program).exists():
        return None
    usage = subprocess.run([program, "--help"], text=True, capture_output=True, check=True).stdout
    return set(re.findall(r"^  ([\w-]+)", usage.partition("Subcommands:\n")[2], re.M))


def check_command(command):
    subprocess.run(["bash", "-n", "-c", command], check=True)
    words = shlex.split(command)
    if words[0] == "./dev":
        assert words[1] in dev_verbs(), f"{command}: ./dev help has no {words[1]}"
    elif words[0] == "sparsight":
        assert program_verbs() is None or words[1] in program_verbs(), f"{command}: the program has no {words[1]}"
    elif "/" in words[0]:
        assert (ROOT / words[0]).exists(), f"{command}: there is no {words[0]}"
    else:
        assert words[0] in PROGRAMS, f"{command}: {words[0]} is none of {sorted(PROGRAMS)}"


def check_step(step):
    assert set(step) <= STEP_KEYS, f"unknown keys of a step: {set(step) - STEP_KEYS}"
    assert ("run" in step) != ("uses" in step), f"a step has either run or uses: {step}"
    if "uses" in step:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+", step["uses"]), f"an action needs a version: {step['uses']}"
        return
    assert "${{" not in step["run"], f"{step['run']}: pass expressions by env, whose values the shell does not run"
    for line in step["run"].strip().split("\n"):
        check_command(line)


def check_job(name, job, jobs):
    assert set(job) <= JOB_KEYS, f"unknown keys of {name}: {set(job) - JOB_KEYS}"
    needs = job.get("needs", [])
    for other in [needs] if isinstance(needs, str) else needs:
        assert other in jobs, f"{name} needs {other}, which is no job"
    for step in job["steps"]:
        check_step(step)
    if any(step.get("run", "").startswith("./dev") for step in job["steps"]):
        assert any(step.get("uses", "").startswith("actions/checkout@") for step in job["steps"]), f"{name} has no clone"


def main():
    if importlib.util.find_spec("yaml") is None:
        print("PyYAML is not installed: it comes with mkdocs-material")
        sys.exit(77)
    import yaml
    files = sorted(WORKFLOWS.glob("*.yml"))
    assert files, f"no workflows in {WORKFLOWS}"
    commands = 0
    for file in files:
        workflow = yaml.safe_load(file.read_text())
        assert set(workflow) <= WORKFLOW_KEYS, f"unknown keys of {file.name}: {set(workflow) - WORKFLOW_KEYS}"
        assert workflow[True] and workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            check_job(name, job, workflow["jobs"])
            commands += sum("run" in step for step in job["steps"])
    assert commands >= 5, commands
    if shutil.which("actionlint"):
        subprocess.run(["actionlint", *files], check=True)
    print(f"{commands} commands in {len(files)} workflow{'s' * (len(files) > 1)}")


main()
