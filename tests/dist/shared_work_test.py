"""Images and jobs that several ranks share have the results of one process, byte for byte but for times: predict,
attack, dg sweep and reproduce. A rank that is killed is named in a whole line, and the same command goes on where it
was.
Skipped where the build's gloo is missing."""
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from collectives import build_has_gloo

PROGRAM = pathlib.Path(os.environ["SPARSIGHT_PROGRAM"]).resolve()
CONFIG = """
[run]
threads = 1
[data]
name = "glyphs"
classes = 4
side = 16
train = 128
validation = 32
test = 200
[loader]
batch = 32
[model]
name = "vit"
width = 32
depth = 2
heads = 2
patch = 4
[moe]
blocks = [-1]
experts = 4
[train]
epochs = 6
[optimizer]
lr = 0.005
"""
SMALL = """--dataset folder --model vit --image-size 16 --set model.size=custom --set model.width=16 --set model.depth=2
 --set model.heads=2 --set model.patch=4 --set loader.batch=8 --set moe.blocks=[1] --set moe.experts=2 --set run.threads=1
 --steps 4 --eval-every 2 --trials 1 --hparams 1 --no-pairs""".split()
TIMES = {"seconds", "step_time", "mem_gb", "images_per_s", "eval_images_per_s", "eval_mem_gb", "peak_bytes_per_image",
         "bytes_per_image", "environment", "xxh3"}


def run(*words, code=0):
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run([str(PROGRAM), *map(str, words)], capture_output=True, env=environment, timeout=300)
    assert done.returncode == code, (words, done.returncode, done.stderr.decode()[-3000:])
    return done


def ranks(number):
    return ["--processes", number] if number > 1 else []


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if key not in TIMES}
    return [without_times(part) for part in value] if isinstance(value, list) else value


def table(file):
    with open(file, newline="") as text:
        return without_times(list(csv.DictReader(text)))


def same(one, several, what):
    if isinstance(one, dict) and isinstance(several, dict):
        for key in one.keys() | several.keys():
            same(one.get(key), several.get(key), f"{what}, {key}")
    shown = "" if isinstance(one, bytes) else f": {several} instead of {one}"
    assert one == several, f"{what}: several ranks have other results than one process{shown}"


def predict(folder):
    images = folder / "images"
    images.mkdir()
    found = sorted((folder / "domains").rglob("*.png"))[:199]
    for number, source in enumerate(found):
        shutil.copy(source, images / f"{number:03}.png")
    (images / "100a.png").write_bytes(b"no image")
    assert len(found) == 199  # and a broken one: four batches of at most 64, which three ranks do not share evenly
    results = []
    for number in (1, 2, 3):
        record = folder / f"routing{number}"
        done = run("predict", folder / "run", images, "--json", "--quiet", *ranks(number), code=1)
        assert b"100a.png" in done.stderr and b"1 of 200 images could not be processed" in done.stderr, done.stderr
        listed = "\n".join(map(str, sorted(images.glob("[0-9][0-9][0-9].png"))))
        by_list = subprocess.run([str(PROGRAM), "predict", str(folder / "run"), "-", "--save-routing", str(record),
                                  *map(str, ranks(number))], input=listed, capture_output=True, text=True, timeout=300)
        assert by_list.returncode == 0, by_list.stderr
        results.append((done.stdout, done.stderr, by_list.stdout, record.read_bytes()))
        assert done.stdout.count(b"\n") == 199
    for other in results[1:]:
        for one, several, what in zip(results[0], other, ("answers", "errors", "answers to a list", "routings")):
            same(one, several, f"predict, {what}")


def attacked(folder, name, *more):
    """What an attack on 200 images in four pieces gives."""
    run("attack", folder / "run", *ATTACK, "--out", folder / name, "--quiet", *more)
    files = {}
    for file in sorted((folder / name).rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            if file.name in ("result.json", "attack.json"):
                content = without_times(json.loads(content))
            elif file.suffix == ".csv":
                content = table(file)
            files[str(file.relative_to(folder / name))] = content
    assert not any(name.startswith("pieces") for name in files), files.keys()
    # Pages have times too.
    return {name: content for name, content in files.items() if not name.endswith(".html")}


ATTACK = ["--attack", "apgd", "--eps", "4/255", "--batch", "16", "--set", "attack.steps=5"]


def attack(folder):
    one = attacked(folder, "one")
    assert "records/records.safetensors" in one and "adversarial.safetensors" in one, one.keys()
    for number in (2, 3):
        several = attacked(folder, f"attack{number}", *ranks(number))
        for name in one.keys() | several.keys():
            same(one.get(name), several.get(name), f"attack, {name}")
    curve = ["--attack", "fgsm", "--eps", "1/255,4/255", "--batch", "16", "--quiet", "--out"]
    run("attack", folder / "run", *curve, folder / "curve")
    run("attack", folder / "run", *curve, folder / "curve2", *ranks(2))
    same(table(folder / "curve/curve.csv"), table(folder / "curve2/curve.csv"), "curve")
    refused = run("attack", folder / "run", "--attack", "fgsm", "--eps", "4/255", "--out", folder / "one", *ranks(3),
                  code=1)
    lines = refused.stderr.decode().splitlines()
    assert len(lines) == 1 and "holds an attack with" in lines[0], lines


def rank_process(folder, rank):
    """The process of a rank whose command names the folder."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes()
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if entry.name.isdigit() and str(folder).encode() in words and f"RANK={rank}".encode() in variables:
            return int(entry.name)
    return None


def listening(process):
    """The addresses on which a process listens, as /proc/net/tcp and tcp6 write them."""
    own = set()
    for link in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            own.add(os.readlink(link))
        except OSError:
            pass
    found = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                found.append(fields[1].split(":")[0])
    return found


def killed(folder):
    """A rank that is killed is named, and no work is lost but that of the pieces that were not saved."""
    command = [str(PROGRAM), "attack", str(folder / "run"), *ATTACK, "--set", "attack.steps=300", "--out",
               str(folder / "killed"), "--processes", "2"]
    attacking = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not list((folder / "killed").glob("pieces/*-*[0-9]")) and time.monotonic() < end:
        time.sleep(0.02)
    process = rank_process(folder / "killed", 1)
    assert process, "rank 1 has ended early"
    for rank in (0, 1):
        addresses = listening(rank_process(folder / "killed", rank))
        assert addresses and set(addresses) == {"0100007F"}, addresses  # 127.0.0.1
    os.kill(process, signal.SIGKILL)
    said = attacking.communicate(timeout=120)[1].splitlines()
    assert attacking.returncode == 128 + signal.SIGKILL, (attacking.returncode, said)
    assert "warning: rank 1 was killed by signal 9" in said, said
    saved = list((folder / "killed").glob("pieces/*-*[0-9]"))
    assert saved and not (folder / "killed/result.json").exists()
    ATTACK.extend(["--set", "attack.steps=300"])
    one, again = attacked(folder, "whole"), attacked(folder, "killed", *ranks(3))
    for name in one.keys() | again.keys():
        same(one.get(name), again.get(name), f"a killed attack, {name}")


def job_results(folder):
    return {file.parent.name: without_times({key: value for key, value in json.loads(file.read_text()).items()
                                             if key != "xxh3"}) for file in folder.glob("jobs/*/result.json")}


def sweep(folder):
    command = ["dg", "sweep", *SMALL, "--data", folder / "domains", "--quiet", "--format", "csv"]
    printed, results = [], []
    for number in (1, 2, 3):
        printed.append(run(*command, "--out", folder / f"sweep{number}", *ranks(number)).stdout)
        results.append(job_results(folder / f"sweep{number}"))
    assert len(results[0]) > 3, results[0].keys()
    for number in (1, 2):
        same(results[0], results[number], "dg sweep, results")
        tables = [[line for line in text.splitlines() if b"selection" in line] for text in (printed[0], printed[number])]
        same(tables[0], tables[1], "dg sweep, tables")
    refused = run(*command, "--out", folder / "sweep1", "--plan", *ranks(2), code=2)
    assert b"--plan" in refused.stderr, refused.stderr


def reproduce(folder):
    command = ["reproduce", "pmoe/fig4", "--scale", "smoke", "--synthetic", "--json", "--quiet"]
    printed, results = [], []
    for number in (1, 2, 3):
        done = run(*command, "--run", folder / f"figure{number}", *(ranks(number) or ["--jobs", "1"]))
        printed.append(without_times(json.loads(done.stdout)))
        results.append(job_results(folder / f"figure{number}"))
    assert len(results[0]) > 1
    for number in (1, 2):
        same(results[0], results[number], "reproduce, results of jobs")
        same(printed[0].get("rows"), printed[number].get("rows"), "reproduce, table")
    refused = run("reproduce", "list", *ranks(2), code=2)
    assert b"leave it out for list" in refused.stderr, refused.stderr


def main():
    if not build_has_gloo(PROGRAM):
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "config.toml").write_text(CONFIG)
        run("train", folder / "config.toml", "--out", folder / "run", "--quiet")
        run("data", "make", folder / "domains", "--layout", "domain", "--set", "side=16", "--set", "classes=3", "--set",
            "train=240", "--set", "validation=24", "--set", "test=24", "--quiet")
        for part in (predict, attack, killed, sweep, reproduce):
            part(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
