"""./dev bench mobile with tiny sizes and without other runtimes: what it prints and writes."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
if importlib.util.find_spec("numpy") is None:
    print("needs numpy (pip install numpy)")
    sys.exit(77)
if not (BUILD / "runtime/libsparsight_infer.so").exists():
    print("this build has no libsparsight_infer")
    sys.exit(77)

BENCH, TABLE = "bench/peers/mobile.py", "bench/peers/mobile_table.py"
TINY = "--quick --size 2x64 --side 32 --patch 16 --classes 10 --experts 4 --batch 1,2 --rounds 3 --turn 0.002"
TINY = [*TINY.split(), "--images", "20", "--starts", "1", "--engines", ""]
TYPES = {"fp32": 1e-6, "bf16": 0.05, "int8": 0.2}


def python(*arguments, code=0):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == code, done
    return done


with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "results.json"
    printed = python(BENCH, "--build", BUILD, *TINY, "--json", file).stdout
    results = json.loads(file.read_text())
    again = python(TABLE, file).stdout
    assert again == printed, (again, printed)

cases = {(row["routing"], row["batch"], row["threads"], row["type"]) for row in results["rows"]}
assert cases == {(routing, batch, 1, kind) for routing in ("dense", "mobile") for batch in (1, 2) for kind in TYPES}
for row in results["rows"]:
    ours = row["seconds"]["ours"]
    assert 0 < ours["low"] <= ours["median"] <= ours["high"], row
    assert row["errors"]["ours"] <= TYPES[row["type"]], row
    if row["type"] == "fp32" and row["batch"] == 1:
        # By hand: 4 patches of 16 x 16 x 3 numbers, 5 tokens of width 64, 10 classes, hidden width 256. Products of
        # a whole block's attention: 4 x 5 x 64 x 64 + 2 x 5 x 5 x 64 = 85,120; where only the class token is computed:
        # keys and values 40,960, query and projection 8,192, attention 640. MLP of a token: 2 x 64 x 256 = 32,768.
        embed_and_head = 4 * 768 * 64 + 640
        dense = embed_and_head + 85_120 + 5 * 32_768 + 49_792 + 32_768
        mobile = embed_and_head + 85_120 + 5 * 32_768 + 85_120 + 32_768 + 64 * 4
        assert row["operations"] == 2 * {"dense": dense, "mobile": mobile}[row["routing"]], row
assert [row["name"] for row in results["starts"]] == ["none", "sparsight-run", "ours"]
assert all(row["seconds"]["median"] > 0 and row["peak_bytes"] > 1 << 20 for row in results["starts"])
assert [row["kept"] for row in results["demand"]] == ["all", "3", "1"]
assert all(sum(row["experts_used"].values()) == 20 and row["pss_bytes"] > 1 << 20 for row in results["demand"])
assert set(results) >= {"benchmark", "machine", "environment", "commit", "settings", "peaks"}

for option, value, words in (("--size", "big", "DEPTHxWIDTH"), ("--routing", "top9", "none of dense, mobile"),
                             ("--engines", "ONNX", "none of ONNX Runtime")):
    assert words in python(BENCH, option, value, code=2).stderr.splitlines()[-1], option
missing = python(BENCH, "--build", "nowhere", code=1).stderr
assert "is missing; build the targets" in missing and "Traceback" not in missing, missing
print("the benchmark prints its tables, writes them as JSON and names what it cannot run")
