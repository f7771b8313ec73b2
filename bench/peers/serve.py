"""Requests per second of `sparsight serve` beside the images per second of the engine alone, which computes batches of the
same size on as many threads (libsparsight_infer, one call after the other). Both take turns in short rounds, so that what
else runs on the machine slows both. The clients run on the same cores. Prints one line and writes JSON where --out says.

    ./dev bench serve --rounds 7 --seconds 4 --out bench/results/serve.json
"""
import argparse
import array
import ctypes
import http.client
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIDE = 224


class Result(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("images", ctypes.c_int64), ("logits", ctypes.c_void_p),
                ("probabilities", ctypes.c_void_p), ("features", ctypes.c_void_p)]


class Engine:
    """The model in this process. rate(): images per second of batches of `batch` images."""

    def __init__(self, library, model, batch, threads):
        self.library = ctypes.CDLL(str(library))
        handle, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.library.sparsight_infer_open(os.fsencode(model), ctypes.c_int64(-1), ctypes.byref(handle)))
        self.check(self.library.sparsight_infer_open_session(handle, ctypes.byref(self.session)))
        self.check(self.library.sparsight_infer_set_threads(self.session, ctypes.c_int64(threads)))
        self.batch = batch
        self.pixels = array.array("f", [i % 255 / 255 for i in range(batch * 3 * SIDE * SIDE)])
        self.logits = array.array("f", bytes(4 * 1000 * batch))
        self.shape = (ctypes.c_int64 * 4)(batch, 3, SIDE, SIDE)

    def check(self, status):
        self.library.sparsight_infer_last_error.restype = ctypes.c_char_p
        assert status == 0, self.library.sparsight_infer_last_error()

    def rate(self, seconds):
        result = Result(ctypes.sizeof(Result), self.batch, self.logits.buffer_info()[0], None, None)
        begin, images = time.monotonic(), 0
        while time.monotonic() < begin + seconds:
            self.check(self.library.sparsight_infer_classify_pixels(
                self.session, ctypes.c_void_p(self.pixels.buffer_info()[0]), self.shape, ctypes.byref(result)))
            images += self.batch
        return images / (time.monotonic() - begin)


def png(side):
    rows = b"".join(b"\0" + bytes((5 * x + 3 * y + c) % 256 for x in range(side) for c in range(3)) for y in range(side))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def request_rate(port, clients, seconds, picture):
    """Answers per second, each of one picture, to clients that ask again as soon as they are answered."""
    counts, end = [0] * clients, time.monotonic() + seconds

    def client(number):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while time.monotonic() < end:
            connection.request("POST", "/predict?top=1", picture)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            counts[number] += 1
        connection.close()
    begin = time.monotonic()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(counts) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--library", type=pathlib.Path, help="libsparsight_infer.so (default: the build's)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--clients", type=int, default=48)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--out", type=pathlib.Path)
    wanted = parser.parse_args()
    os.environ.setdefault("SPARSIGHT_ARITHMETIC", "consistent")  # of both
    sys.path.insert(0, str(ROOT / "tests/support"))
    os.environ["BUILD"] = str(wanted.build)
    from served import Served, write_model
    threads = os.cpu_count()
    library = wanted.library or next(iter(sorted(wanted.build.glob("runtime/libsparsight_infer.so*"))))
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(pathlib.Path(folder) / "vit.sparsight", "1", "--per-token", "--side", str(SIDE), "--patch", "16",
                            "--width", str(wanted.width), "--depth", "12", "--heads", "6", "--routed", "6", "--experts", "8",
                            "--classes", "1000")
        engine = Engine(library, model, wanted.batch, threads)
        with Served(model, "--threads", threads, "--max-batch", wanted.batch) as server:
            picture, rates = png(SIDE), []
            engine.rate(1), request_rate(server.port, wanted.clients, 1, picture)
            for _ in range(wanted.rounds):
                alone = engine.rate(wanted.seconds)
                rates.append((request_rate(server.port, wanted.clients, wanted.seconds, picture), alone))
            metrics = server.metrics()
            size = metrics["sparsight_batch_images_sum"] / metrics["sparsight_batch_images_count"]
    ratios = sorted(served / alone for served, alone in rates)
    ratio = statistics.median(ratios)
    print(f"served {statistics.median(s for s, _ in rates):.1f} requests/s, engine alone "
          f"{statistics.median(a for _, a in rates):.1f} images/s; ratio {ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f} in "
          f"{wanted.rounds} rounds); {size:.1f} images a batch; load average {os.getloadavg()[0]:.1f}")
    if wanted.out:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
        processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
        wanted.out.write_text(json.dumps({
            "benchmark": "serve", "machine": f"{processor}, {threads} cores", "commit": commit, "rounds": wanted.rounds,
            "model": f"12x{wanted.width}, {SIDE} pixels, 8 experts top-2 of each token in 6 blocks", "batch": wanted.batch,
            "clients": wanted.clients, "load_average": os.getloadavg()[0],
            "requests_per_second": [served for served, _ in rates], "engine_images_per_second": [alone for _, alone in rates],
            "ratio": {"median": ratio, "low": ratios[0], "high": ratios[-1]}}, indent=1) + "\n")


main()
