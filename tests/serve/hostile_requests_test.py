"""Thousands of damaged and hostile requests to `sparsight serve`: the server lives, its memory stays, it never answers 500,
and each error is one line of JSON. SPARSIGHT_HOSTILE_REQUESTS changes their number, SPARSIGHT_PROPERTY_SEED the seed."""
import concurrent.futures
import gzip
import json
import os
import pathlib
import random
import re
import struct
import sys
import tempfile
import zlib

sys.path.insert(0, "tests/support")
from served import SANITIZED, Served, has_server, image_tensor, write_model  # noqa: E402

COUNT = int(os.environ.get("SPARSIGHT_HOSTILE_REQUESTS", "4000"))
SEED = int(os.environ.get("SPARSIGHT_PROPERTY_SEED", "1"))
MEMORY_GROWTH = 48 << 20
CODES = {200, 400, 404, 405, 408, 411, 413, 414, 416, 417, 431, 503}

if not has_server():
    print("this build has no HTTP server: cpp-httplib (libcpp-httplib-dev) is missing")
    sys.exit(77)
PICTURE = pathlib.Path("tests/compat/0.1.0/image.png").read_bytes()


def head(method, path, *headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if method == "POST" and not any(line.lower().startswith(("content-length", "transfer-")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(body, size=50):
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def png_of_size(width, height):
    """A PNG file that claims that size and has few bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b""))


def starting_points(model):
    """Requests from which others are made: right ones, and wrong ones of each kind."""
    infer = f"/v2/models/{model}/infer"
    tensor = json.dumps(image_tensor(PICTURE)).encode()
    pixels = {"name": "pixels", "datatype": "FP32", "shape": [1, 3, 32, 32], "data": [0.5] * 3072}
    numbers = json.dumps({"inputs": [pixels], "parameters": {"explain": True}, "outputs": [{"name": "features"}]}).encode()
    texts = [tensor, numbers, b"[" * 10**5, b'{"inputs":' * 10**4, b'{"inputs":[{"data":' + b"[" * 1000, b"{" + b'"a":1,' * 9999,
             b'{"inputs":[{"name":"pixels","datatype":"FP32","shape":[9223372036854775807,3,32,32],"data":[]}]}',
             b'{"inputs":[{"name":"pixels","datatype":"FP32","shape":[1,3,32,32],"data":[' + b"1e38," * 3071 + b"1e39]}]}",
             b'{"inputs":[{"name":"image","datatype":"BYTES","shape":[1],"data":["' + b"A" * 10**6 + b'"]}]}',
             b'{"id":"' + b"\\ud800" * 100 + b'"}', b"\xff" * 1000, b"null", b"1e99999", b'"' + b"x" * 10**5 + b'"']
    yield from (head("POST", infer, body=text) for text in texts)
    pictures = [PICTURE, b"", PICTURE[:100], png_of_size(10**5, 10**5), png_of_size(4000, 4000), png_of_size(2**31 - 1, 1),
                b"II*\0" + bytes(100), b"GIF89a" + b"\xff" * 50, b"\xff\xd8\xff\xe0" + bytes(200), b"BM" + b"\xff" * 60]
    yield from (head("POST", "/predict?top=3&explain=1", body=picture) for picture in pictures)
    yield from (head("GET", path) for path in (
        "/", "/metrics", "/v2", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/%00", "/page.js/../page.css", "//etc/passwd",
        "/predict?" + "a=b&" * 1000, "/" + "x" * 7000, "/" + "%41" * 2000, "http://example.com/", "*", "/%zz", "/\xff",
        "/predict?top=" + "9" * 500, "/v2/models/" + model + "/infer?x=%0d%0aSet-Cookie:a", "/?x=" + "%F0%9F%92%A9" * 100))
    yield from (head("GET", "/", header) for header in (
        "Range: bytes=" + "0-0," * 1500, "Range: bytes=0-,0-,0-,0-", "Range: bytes=" + "1" * 6000, "Accept-Encoding: br, gzip",
        "Connection: close", "Connection: upgrade", "Expect: 100-continue", "X: " + "y" * 5000, "X: " + "y" * 50_000,
        "\r\n".join("a: b" for _ in range(20_000)), "no colon", ": nameless", "Host: a\0b", "Content-Length: 5"))
    yield from (head("POST", "/predict", header, body=PICTURE) for header in (
        "Content-Length: -1", "Content-Length: 99999999999999999999999", "Content-Length: 1", "Content-Length: 1e3", "Content-Length:",
        "Content-Length: 10\r\nContent-Length: 11", "Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 999999",
        "Transfer-Encoding: gzip", "Content-Encoding: gzip", "Content-Encoding: br", "Content-Type: multipart/form-data",
        "Content-Type: multipart/form-data; boundary=x", "Expect: 100-continue", "Content-Type: application/x-www-form-urlencoded"))
    packed = gzip.compress(PICTURE)
    yield head("POST", "/predict", "Content-Encoding: gzip", body=packed)
    yield head("POST", "/predict", "Content-Encoding: gzip", body=gzip.compress(bytes(50 << 20)))
    yield head("POST", "/predict", "Transfer-Encoding: chunked", body=chunked(PICTURE))
    yield head("POST", "/predict", "Transfer-Encoding: chunked", body=b"ffffffffffffffff\r\nx")
    yield head("POST", "/predict", "Transfer-Encoding: chunked", body=b"5;" + b"e" * 10**5 + b"\r\nabcde\r\n0\r\n\r\n")
    yield head("POST", "/predict", "Transfer-Encoding: chunked", body=b"1\r\nx\r\n" * 10_000)
    yield from (head(method, path) for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PRI", "BREW", "get")
                for path in ("/", "/predict", "*"))
    yield from (b"\r\n" * 1000, bytes(10_000), b"GET /\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n", b"GET / HTTP/1.1", b"\x16\x03\x01\x02\0\x01",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET " + b"/" * 50_000, head("GET", "/v2") * 50,
                head("POST", "/predict", body=PICTURE) * 3)


def mutated(request, stream):
    data = bytearray(request)
    for _ in range(stream.choice((0, 1, 1, 2, 4, 16))):
        at, size = stream.randrange(len(data) + 1), stream.choice((1, 1, 2, 8, 64, 1000))
        kind = stream.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << stream.randrange(8)
        elif kind == 1:
            del data[at:at + size]
        elif kind == 2:
            data[at:at] = stream.randbytes(size)
        elif kind == 3:
            data[at:at] = data[at:at + size]
        elif kind == 4:
            del data[at:]
        else:
            data[at:at + 1] = stream.choice((b"\r\n", b"\0", b"\xff", b"%00", b"9" * 20, b"-", b"{", b"]", b'"', b"1e999", b"NaN"))
    return bytes(data)


def check_answer(request, answer):
    if not answer:
        return
    codes = [int(code) for code in re.findall(rb"HTTP/1\.1 (\d+) [A-Z]", answer)]
    assert codes and set(codes) - {100} <= CODES, (codes, request[:300], answer[:300])
    first, _, rest = answer.partition(b"\r\n\r\n")
    if codes[0] >= 400 and b"HEAD" not in request[:10] and b"Content-Encoding:" not in first:
        error = json.loads(rest.partition(b"\n")[0])
        assert list(error) == ["error"] and "\n" not in error["error"], rest


def send_all(server, requests):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for request, answer in zip(requests, pool.map(server.raw, requests)):
            check_answer(request, answer)


with tempfile.TemporaryDirectory() as folder:
    model = write_model(pathlib.Path(folder) / "vit.sparsight")
    with Served(model, "--timeout", 5, "--max-megabytes", 4) as server:
        right = server.json("POST", "/predict", PICTURE)
        seeds = list(starting_points(server.name))
        send_all(server, seeds)
        stream = random.Random(SEED)
        requests = [mutated(stream.choice(seeds), stream) for _ in range(COUNT)]
        half = len(requests) // 2
        send_all(server, requests[:half])
        before = server.memory()
        send_all(server, requests[half:])
        after = server.memory()
        assert server.process.poll() is None and server.json("POST", "/predict", PICTURE) == right
        codes = {}
        for line, value in server.metrics().items():
            if found := re.search(r'requests_total\{.*code="(\d+)"', line):
                codes[found[1]] = codes.get(found[1], 0) + int(value)
        print(f"{len(seeds) + COUNT} requests, answers {codes}; memory {before / 2**20:.0f} MiB, then {after / 2**20:.0f}")
        assert SANITIZED or after < before + MEMORY_GROWTH, (before, after)
