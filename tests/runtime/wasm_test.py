"""The tests of what knows nothing of torch, compiled for WebAssembly (./dev build wasm) and run by Node; without the
slowest two groups, which take most of the time: ctest --test-dir build/wasm runs all."""
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM = pathlib.Path("build/wasm/tests/sparsight_torch_free_tests")
FILTER = "-*LinearTime:Gemm.Agrees*"
# What WebAssembly has not: the only reasons for which tests may be skipped there.
REASONS = {"WebAssembly has no threads here", "WebAssembly has no processes or signals", "WebAssembly gives no memory back",
           "this CPU has no fused multiply-add", "this CPU has no AMX"}

if not PROGRAM.exists():
    print(f"{PROGRAM} does not exist: ./dev build wasm builds it, with Debian's emscripten")
    sys.exit(77)
if not shutil.which("node"):
    print("node is missing; Debian's package nodejs has it")
    sys.exit(77)
done = subprocess.run(["node", PROGRAM, f"--gtest_filter={FILTER}"], capture_output=True, text=True, timeout=600)
lines = done.stdout.splitlines()
assert done.returncode == 0, "\n".join(line[:300] for line in [*lines[-60:], *done.stderr.splitlines()[-5:]])
passed = sum(line.startswith("[       OK ]") for line in lines)
reasons = {lines[i + 1] for i, line in enumerate(lines) if re.search(r":\d+: Skipped$", line)}
assert passed > 200, passed
assert reasons <= REASONS, reasons - REASONS
assert any("LevelsOfWasm" in line for line in lines)
print(f"{passed} tests passed in Node; skipped: {', '.join(sorted(reasons))}")
