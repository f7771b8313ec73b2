"""Tar shards through the program: what Python's tarfile reads of them, shards that Python writes, a writer that is
killed, and a training on shards, which has the bits of one on the same images as files in the same order, from a web
server too."""
import contextlib
import hashlib
import http.server
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

PROGRAM = os.environ["SPARSIGHT_PROGRAM"]
os.environ["no_proxy"] = "127.0.0.1"
IMAGES = {"train": 150, "validation": 40, "test": 30}
CONFIG = """
[loader]
batch = 16
sampling = "sequential"
[transforms]
train = [{op = "random_crop", size = 16, padding = 2}, {op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]
[model]
name = "vit"
width = 16
depth = 1
heads = 2
patch = 8
[moe]
blocks = [0]
experts = 2
[train]
epochs = 2
"""


def run(*arguments, code=0):
    result = subprocess.run([PROGRAM, *map(str, arguments)], text=True, capture_output=True, timeout=300)
    assert result.returncode == code, (arguments, result.returncode, result.stdout, result.stderr)
    return result.stdout + result.stderr


def hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def samples(shard):
    """Keys, in order, with the members of each, as webdataset groups them."""
    with tarfile.open(shard) as archive:
        found = {}
        for member in archive.getmembers():
            assert member.isfile() and (member.mtime, member.uid, member.gid, member.mode) == (0, 0, 0, 0o644), member
            assert member.uname == member.gname == "", member
            key, ending = member.name.split(".", 1)
            assert ending not in found.setdefault(key, {}), member
            found[key][ending] = archive.extractfile(member).read()
    return found


def check_python_reads_them(pictures, shards):
    classes = (shards / "classes.txt").read_text().splitlines()
    assert classes == sorted(path.name for path in (pictures / "train").iterdir())
    for split, folder in {"train": "train", "validation": "val", "test": "test"}.items():
        expected = sorted((path.read_bytes(), classes.index(path.parent.name)) for path in (pictures / folder).rglob("*.png"))
        names = sorted(shards.glob(f"{split}-*.tar"))
        assert [name.name for name in names] == [f"{split}-{i:06}.tar" for i in range((len(expected) + 19) // 20)]
        found = {key: members for name in names for key, members in samples(name).items()}
        assert list(found) == [f"{i:08}" for i in range(len(expected))], list(found)
        assert sorted((members["png"], int(members["cls"])) for members in found.values()) == expected
    lines = [json.loads(line) for line in (shards / "shards.jsonl").read_text().splitlines()]
    assert lines[0]["shards"] == len(lines) - 1 == len(list(shards.glob("*.tar")))
    for line in lines[1:]:
        data = (shards / line["shard"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (line["bytes"], line["sha256"])
        for name, offset, size in zip(line["images"], line["offsets"], line["sizes"]):
            key, ending = name.split(".")
            assert data[offset:offset + size] == samples(shards / line["shard"])[key][ending]
    sums = dict(reversed(line.split("  ")) for line in (shards / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: digest for name, digest in hashes(shards).items() if name != "SHA256SUMS"}


def check_killed_writer(pictures, shards, folder):
    """Killed again and again, it leaves whole shards, and in the end the same files."""
    kills = 0
    for attempt in range(200):
        child = subprocess.Popen([PROGRAM, "data", "shard", pictures, "--out", folder, "--shard-size", "20", "--quiet"])
        try:
            child.wait(timeout=0.02 + 0.004 * attempt)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        kills += child.wait() != 0
        whole = hashes(shards)
        for name, digest in (hashes(folder) if folder.exists() else {}).items():
            assert digest == whole.get(name) or name.startswith(".") or name.endswith(".tmp"), name
        if child.returncode == 0:
            break
    assert child.returncode == 0 and kills > 0, (child.returncode, kills)
    assert hashes(folder) == hashes(shards), set(hashes(folder)) ^ set(hashes(shards))


def check_python_writes_them(scratch, shards):
    """Shards in each format of tarfile, with other members, and labels that are names."""
    names = (shards / "classes.txt").read_text().splitlines()
    foreign = scratch / "foreign"
    foreign.mkdir()
    sources = sorted(shards.glob("*.tar"))
    for number, source in enumerate(sources):
        format = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)[number % 3]
        with tarfile.open(foreign / f"part-{number:03}.tar", "w", format=format) as archive:
            for key, members in samples(source).items():
                long = "folder/" * 5 + ("long" * 40 + "/" if format != tarfile.USTAR_FORMAT else "") + key
                content = {"json": b"{}", "cls": names[int(members["cls"])].encode(), "seg.png": b"mask", "png": members["png"]}
                for ending, body in content.items():
                    entry = tarfile.TarInfo(f"{long}.{ending}")
                    entry.size, entry.mtime, entry.uname = len(body), time.time(), "somebody"
                    archive.addfile(entry, io.BytesIO(body))
    parts = {"test_shards": "part-{000..001}.tar", "train_shards": "part-{002..009}.tar", "validation_shards": "part-{010,011}.tar"}
    settings = [part for key, value in {"root": foreign, **parts}.items() for part in ("--set", f"{key}={value}")]
    text, expected = run("data", "inspect", "webdataset", *settings, "--quiet"), run("data", "inspect", shards)
    assert text.split(":", 1)[1] == expected.split(":", 1)[1], (text, expected)


@contextlib.contextmanager
def served(folder):
    """The address of a web server of the folder that answers ranges, and its requests."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path, asked = folder / self.path[1:], self.headers.get("Range")
            requests.append((self.path, asked))
            data = path.read_bytes() if path.is_file() else b""
            if not path.is_file():
                self.send_response(404)
            elif asked:
                first, last = (int(number) for number in asked.removeprefix("bytes=").split("-"))
                total, data = len(data), data[first:last + 1]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{first + len(data) - 1}/{total}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()


def tensors(file):
    """The bytes of all tensors of a safetensors file by name: weights, and what the optimiser and averages hold."""
    begin = 8 + int.from_bytes(file[:8], "little")
    entries = json.loads(file[8:begin])
    entries.pop("__metadata__")
    assert any("optimizer" in name for name in entries) and len(entries) > 10, list(entries)
    return {name: file[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]] for name, entry in entries.items()}


def check_training(scratch, shards):
    """The shards' images as files of a manifest, in their order."""
    names = (shards / "classes.txt").read_text().splitlines()
    rows = ["path,label,split"]
    (scratch / "unpacked").mkdir()
    for shard in sorted(shards.glob("*.tar")):
        for key, members in samples(shard).items():
            path = scratch / "unpacked" / f"{shard.stem}-{key}.png"
            path.write_bytes(members["png"])
            rows.append(f"{path.name},{names[int(members['cls'])]},{shard.stem.rsplit('-', 1)[0]}")
    (scratch / "unpacked/manifest.csv").write_text("\n".join(rows) + "\n")
    config = scratch / "config.toml"
    config.write_text(CONFIG)

    def weights(name, *settings, more=()):
        out = scratch / "runs" / name
        run("train", config, "--out", out, "--quiet", *more, *(part for setting in settings for part in ("--set", setting)))
        return tensors((out / "checkpoints/last.safetensors").read_bytes())

    files = weights("files", "data.name=manifest", f"data.root={scratch / 'unpacked'}")
    tar = ("data.name=webdataset", f"data.root={shards}")
    for workers in (0, 1, 3):
        assert weights(f"tar{workers}", *tar, f"loader.workers={workers}") == files
    streamed = [weights(f"streamed{workers}", *tar, "loader.sampling=shards", "loader.shuffle_buffer=40",
                        f"loader.workers={workers}", f"loader.prefetch={prefetch}") for workers, prefetch in ((0, 1), (1, 1), (3, 7))]
    assert streamed[0] == streamed[1] == streamed[2] != files
    with served(shards) as (address, requests):
        streaming = ("data.name=webdataset", f"data.root={address}", "loader.sampling=shards", "loader.shuffle_buffer=40")
        assert weights("remote", *streaming, "loader.workers=2") == streamed[0]
        # The index, the names of classes, and each of the twelve shards once, in two epochs of 150 images.
        assert len(requests) == 2 + 12, requests
        (shards / "train-000003.tar").rename(scratch / "away.tar")
        text = run("train", config, "--out", scratch / "runs/missing", "--quiet", *(part for one in streaming for part in ("--set", one)), code=1)
        assert text.count("\n") == 1 and f"{address}/train-000003.tar: HTTP status 404" in text, text
        (scratch / "away.tar").rename(shards / "train-000003.tar")
    steps = [weights(f"ranks{name}", *tar, "loader.sampling=shards", "loader.shuffle_buffer=40", *settings, more=more)
             for name, settings, more in ((1, ["train.accumulate=2"], []), (2, [], ["--processes", "2"]))]
    assert steps[0] == steps[1] != streamed[0]


def main():
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        pictures, shards = scratch / "pictures", scratch / "shards"
        sizes = [part for split, count in IMAGES.items() for part in ("--set", f"{split}={count}")]
        run("data", "make", pictures, "--set", "side=16", "--set", "classes=4", *sizes, "--quiet")
        run("data", "shard", pictures, "--out", shards, "--shard-size", 20, "--quiet")
        check_python_reads_them(pictures, shards)
        assert "220 images are valid" in run("data", "verify", shards)
        check_killed_writer(pictures, shards, scratch / "killed")
        check_python_writes_them(scratch, shards)
        check_training(scratch, shards)
        text = run("data", "shard", pictures, "--out", shards, "--shard-size", 30, code=1)
        assert "choose an empty folder" in text, text
        text = run("data", "shard", "glyphs", "--out", scratch / "none", code=2)
        assert "images that are not files" in text, text
        assert "--shard-size must be" in run("data", "shard", pictures, "--out", shards, "--shard-size", "5TB", code=2)
    print("shards are read and written as Python does")
    return 0


if __name__ == "__main__":
    sys.exit(main())
