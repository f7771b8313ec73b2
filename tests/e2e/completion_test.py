"""What shells complete, asked of bash itself; the scripts of zsh and fish and the manual pages are checked by the programs
that read them, where these are installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.environ["SPARSIGHT_PROGRAM"]
failures = 0


def check(right, what):
    global failures
    if not right:
        failures += 1
        print("FAILED:", what)


def printed(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout


def completed(line):
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    script = f"""
      source <("$PROGRAM" completion bash)
      COMP_WORDS=({' '.join(f"'{word}'" for word in words)}) COMP_CWORD={len(words) - 1} COMPREPLY=()
      compopt() {{ :; }}  # there is no completion in progress
      _sparsight
      printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PROGRAM": PROGRAM})
    check(done.returncode == 0 and not done.stderr, (line, done.stderr))
    return done.stdout.split()


check(completed("sparsight tr") == ["train"], completed("sparsight tr"))
check({"sweep", "collect"} <= set(completed("sparsight dg ")), completed("sparsight dg "))
check(completed("sparsight train --res") == ["--resume"], completed("sparsight train --res"))
check(completed("sparsight --quiet train --res") == ["--resume"], "a flag before the verb")
check(completed("sparsight export --format ") == ["sparsight", "onnx"], completed("sparsight export --format "))
check(completed("sparsight train a.toml --set train.epo") == ["train.epochs="], "settings")
check(completed("sparsight train conf") == [], "left to the names of files")

for shell, checks in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])):
    if shutil.which(shell):
        done = subprocess.run([shell, *checks, "/dev/stdin"], input=printed("completion", shell), capture_output=True, text=True)
        check(done.returncode == 0 and not done.stderr, (shell, done.stderr[:500]))

with tempfile.TemporaryDirectory() as folder:
    printed("help", "--man-pages", folder)
    pages = sorted(path.name for path in pathlib.Path(folder).iterdir())
    check({"sparsight.1", "sparsight-train.1", "sparsight-dg-sweep.1"} <= set(pages), pages)
    check((pathlib.Path(folder) / "sparsight-train.1").read_text() == printed("help", "train", "--man"), "the same page")
    for page in pages:
        text = (pathlib.Path(folder) / page).read_text()
        check(text.startswith('.TH "') and ".SH SYNOPSIS" in text, page)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=text, capture_output=True, text=True)
            check(done.returncode == 0 and not done.stderr, (page, done.stderr[:500]))

sys.exit(1 if failures else 0)
