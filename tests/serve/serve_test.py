"""`sparsight serve` as clients see it: each address, answers equal to those of `sparsight predict --json`, the same bits
for 32 clients at once as for one, a token, limits, and an end by SIGTERM that finishes what is in work."""
import concurrent.futures
import gzip
import json
import math
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, "tests/support")
from served import BUILD, PROGRAM, Served, has_server, image_tensor, write_model  # noqa: E402

IMAGE = pathlib.Path("tests/compat/0.1.0/image.png")
RUN = pathlib.Path("tests/compat/0.1.0/run")
SIDE, CLASSES = 32, 12

if not has_server():
    print("this build has no HTTP server: cpp-httplib (libcpp-httplib-dev) is missing")
    sys.exit(77)
temporary = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(temporary.name)
MODEL = write_model(FOLDER / "small vit.sparsight", "1", "--per-token")
PICTURE = IMAGE.read_bytes()


def pixels_request(seed, images=1, **more):
    stream = random.Random(seed)
    data = [round(stream.random(), 4) for _ in range(images * 3 * SIDE * SIDE)]
    tensor = {"name": "pixels", "datatype": "FP32", "shape": [images, 3, SIDE, SIDE], "data": data}
    return json.dumps({"inputs": [tensor], **more})


def check_addresses(server):
    name = server.name
    assert name == "small-vit", name
    assert server.json("GET", "/v2/health/live") == {"live": True}
    assert server.json("GET", "/v2/health/ready")["ready"] is True
    about = server.json("GET", "/v2")
    assert about["name"] == "sparsight" and about["extensions"] == ["explain"] and about["models"] == [name], about
    model = server.json("GET", f"/v2/models/{name}")
    assert model["name"] == name and model["inputs"][0]["shape"] == [-1, 3, SIDE, SIDE], model
    assert [each["name"] for each in model["outputs"]] == ["logits", "probabilities", "features"], model
    assert server.json("GET", f"/v2/models/{name}/ready") == {"name": name, "ready": True}
    for path, kind in [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")]:
        status, headers, text = server.ask("GET", path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and len(text) > 1000, (path, status)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
    status, headers, text = server.ask("HEAD", "/v2/health/live")
    assert status == 200 and text == b"" and int(headers["Content-Length"]) > 0


def check_inference(server):
    address = f"/v2/models/{server.name}/infer"
    answer = server.json("POST", address, pixels_request(1, 2, id="seven", outputs=[{"name": "logits"},
                         {"name": "probabilities"}, {"name": "features"}]))
    assert answer["model_name"] == server.name and answer["id"] == "seven" and "routing" not in answer
    logits, probabilities, features = answer["outputs"]
    assert logits["shape"] == [2, CLASSES] and len(logits["data"]) == 2 * CLASSES and features["shape"] == [2, 64]
    for image in range(2):
        mine = logits["data"][image * CLASSES:(image + 1) * CLASSES]
        total = sum(map(math.exp, mine))
        for got, logit in zip(probabilities["data"][image * CLASSES:], mine):
            assert abs(got - math.exp(logit) / total) < 1e-6, (got, logit)
    default = server.json("POST", address, pixels_request(1, 2))
    assert [each["name"] for each in default["outputs"]] == ["logits", "probabilities"]
    assert default["outputs"][0] == logits
    explained = server.json("POST", f"/v2/models/{server.name}/explain", pixels_request(1, 2))
    assert explained["outputs"] == default["outputs"] and len(explained["routing"]) == 2
    assert explained == server.json("POST", address, pixels_request(1, 2, parameters={"explain": True}))
    layer = explained["routing"][1]["blocks.5.mlp"]
    assert layer["experts"] == 10 and layer["grid"] == [8, 8] and layer["prefix_tokens"] == 1, layer
    assert len(layer["chosen"]) == layer["tokens_per_image"] == 65 and all(len(token) == 2 for token in layer["chosen"])
    assert all(abs(sum(gate for _, gate in token) - 1) < 1e-6 for token in layer["chosen"])


def check_files(server):
    """A file by its bytes, in base64, packed and in chunks: the same answer."""
    plain = server.json("POST", "/predict?top=4&explain=true", PICTURE)
    assert len(plain["classes"]) == 4 and plain["image"] == "image" and len(plain["region"]) == 4, plain
    tensors = server.json("POST", f"/v2/models/{server.name}/explain", json.dumps(image_tensor(PICTURE, PICTURE)))
    assert tensors["routing"] == [plain["routing"]] * 2
    probabilities = tensors["outputs"][1]["data"]
    for entry in plain["classes"]:
        assert abs(probabilities[entry["label"]] - entry["probability"]) < 1e-7
    assert probabilities[:CLASSES] == probabilities[CLASSES:]
    packed = server.json("POST", "/predict?top=4&explain=true", gzip.compress(PICTURE), headers={"Content-Encoding": "gzip"})
    chunked = server.json("POST", "/predict?top=4&explain=true", iter([PICTURE[:100], PICTURE[100:]]))
    assert packed == plain and chunked == plain
    assert server.json("POST", "/predict?name=a%20cat.png", PICTURE)["image"] == "a cat.png"
    if (BUILD / "runtime/sparsight-run").exists():
        done = subprocess.run([BUILD / "runtime/sparsight-run", MODEL, IMAGE, "--json", "--routing", "--top", "4"],
                              capture_output=True, text=True, check=True,
                              env={**os.environ, "SPARSIGHT_ARITHMETIC": "consistent"})
        expected = json.loads(done.stdout)
        assert plain["routing"] == expected["routing"] and plain["experts"] == expected["experts"]


def check_like_predict():
    """A run, as `sparsight predict` answers it."""
    done = subprocess.run([PROGRAM, "predict", RUN, IMAGE, "--json", "--top", "3"], capture_output=True, text=True, check=True,
                          env={**os.environ, "SPARSIGHT_ARITHMETIC": "consistent"})
    expected = json.loads(done.stdout)
    with Served(RUN, "--name", "old") as server:
        answer = server.json("POST", f"/predict?top=3&name={IMAGE}", PICTURE)
    assert list(answer) == list(expected), (answer, expected)
    for got, want in zip(answer["classes"], expected["classes"], strict=True):
        assert (got["class"], got["label"]) == (want["class"], want["label"]), (got, want)
        assert abs(got["probability"] - want["probability"]) <= 1e-12, (got, want)  # of two exp() in double
    for key in ("image", "class", "label", "experts"):
        assert answer[key] == expected[key], (key, answer, expected)


def check_together(server):
    """32 clients at once, each on one connection, get the bytes that one client gets."""
    clients, repeats = 32, 3
    requests = [("POST", f"/v2/models/{server.name}/explain", pixels_request(seed, 1 + seed % 3)) for seed in range(clients)]
    requests[::4] = [("POST", "/predict?explain=1&top=12", PICTURE)] * len(requests[::4])
    alone = [server.ask(*request)[2] for request in requests]
    start = threading.Barrier(clients)

    def client(request):
        connection = server.connection()
        start.wait()
        answers = [server.ask(*request, connection=connection) for _ in range(repeats)]
        connection.close()
        return answers

    before = server.metrics()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for answers, want in zip(pool.map(client, requests), alone):
            assert all(status == 200 and text == want for status, _, text in answers), (answers[0][0], want[:100])
    after = server.metrics()
    images = after["sparsight_images_total"] - before["sparsight_images_total"]
    batches = after["sparsight_batch_images_count"] - before["sparsight_batch_images_count"]
    assert images > 1.5 * batches, (images, batches)
    print(f"{clients} clients: {images:.0f} images in {batches:.0f} batches")


def check_wide_experts():
    """Experts of 768 hidden values, whose work other programs split by the size of the batch."""
    wide = write_model(FOLDER / "wide.sparsight", "1", "--per-token", "--width", "192", "--depth", "3")
    with Served(wide) as server:
        check_together(server)


def check_metrics(server):
    before = server.metrics()
    server.json("POST", "/predict", PICTURE)
    server.json("POST", "/predict", b"nothing", status=400)
    server.json("GET", "/somewhere", status=404)
    after = server.metrics()
    grown = lambda line: after.get(line, 0) - before.get(line, 0)  # noqa: E731
    assert grown('sparsight_requests_total{route="/predict",code="200"}') == 1
    assert grown('sparsight_requests_total{route="/predict",code="400"}') == 1
    assert grown('sparsight_requests_total{route="other",code="404"}') == 1
    assert grown("sparsight_request_seconds_count") == 4  # with the first look at the metrics
    assert grown("sparsight_images_total") == grown('sparsight_batch_images_bucket{le="+Inf"}') == 1
    load = [grown(line) for line in after if line.startswith('sparsight_expert_assignments_total{layer="blocks.4.mlp"')]
    assert len(load) == 10 and sum(load) == 2 * 65, load
    assert after["sparsight_waiting_images"] == 0 and 1 <= after["sparsight_connections"] <= 4


def check_token():
    with Served(MODEL, token="a secret") as server:
        assert server.json("GET", "/v2/health/ready") == {"ready": True, "needs_token": True}
        assert server.ask("GET", "/", headers={"Authorization": ""})[0] == 200
        for given in ("", "Bearer", "Bearer a secre", "Bearer a secrets", "Basic a secret"):
            for method, path in [("GET", "/v2"), ("GET", "/metrics"), ("GET", "/nothing"), ("POST", "/predict")]:
                answer = server.json(method, path, PICTURE if method == "POST" else None, status=401,
                                     headers={"Authorization": given})
                assert "token" in answer and "secre" not in answer
        assert server.json("POST", "/predict", PICTURE)["label"] >= 0
        assert "secret" not in pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_text()


def check_limits():
    with Served(MODEL, "--max-megabytes", 1, "--max-connections", 4, "--max-queue", 2, "--timeout", 2,
                "--max-megapixels", 1) as server:
        assert "at most 1048576" in server.json("POST", "/predict", b"x" * (2 << 20), status=413)
        assert "more than 1048576" in server.json("POST", "/predict", iter([b"x" * 65536] * 40), status=413)
        bomb = gzip.compress(b"x" * (200 << 20))
        assert "more than 1048576" in server.json("POST", "/predict", bomb, status=413, headers={"Content-Encoding": "gzip"})
        assert "at most 2 at once" in server.json("POST", f"/v2/models/{server.name}/infer",
                                                  json.dumps(image_tensor(*[PICTURE] * 3)), status=413)
        held = []
        while len(held) < 4:  # those of the requests before may still be closing
            held.append(server.connection())
            if server.ask("GET", "/v2/health/live", connection=held[-1])[0] != 200:
                held.pop().close()
                time.sleep(0.1)
        answer = server.raw(b"GET /v2/health/live HTTP/1.1\r\n\r\n", close=False)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in answer, answer
        for connection in held:
            connection.close()
        time.sleep(0.3)
        # A client that sends a byte now and then: its request has two seconds altogether.
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(b"POST /predict HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
            answer = b""
            slow.settimeout(0.3)
            while not answer and time.monotonic() < begin + 20:
                try:
                    slow.sendall(b"x")
                    answer = slow.recv(1000)
                except TimeoutError:
                    pass
        assert answer.startswith(b"HTTP/1.1 408 ") and time.monotonic() < begin + 10, answer
        assert server.metrics()["sparsight_refused_connections_total"] >= 1


def check_full_queue():
    """A request that the queue has no room for is told when to come again."""
    slow = write_model(FOLDER / "slow.sparsight", "1", "--width", "192", "--depth", "12", "--side", "160", "--patch", "8")
    data = {"name": "pixels", "datatype": "FP32", "shape": [2, 3, 160, 160], "data": [0.5] * (2 * 3 * 160 * 160)}
    body = json.dumps({"inputs": [data], "outputs": [{"name": "logits"}]})
    with Served(slow, "--max-queue", 2, "--max-batch", 1, "--threads", 1) as server:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: server.ask("POST", f"/v2/models/{server.name}/infer", body), range(8)))
        codes = sorted(status for status, _, _ in answers)
        assert codes[0] == 200 and codes[-1] == 503 and set(codes) == {200, 503}, codes
        assert all(headers["Retry-After"] == "1" for status, headers, _ in answers if status == 503)
        # SIGTERM while a request is in work: it is answered, and the server ends with 0.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            late = pool.submit(server.ask, "POST", f"/v2/models/{server.name}/infer", body)
            time.sleep(0.5)
            server.stop()
            assert late.result()[0] == 200 and server.code == 0, (late.result(), server.code)


def check_refusals():
    """A server that cannot start says so in one line."""
    def fails(code, words, *arguments):
        done = subprocess.run([PROGRAM, "serve", *map(str, arguments)], capture_output=True, text=True, timeout=60)
        assert done.returncode == code and words in done.stderr and done.stdout == "", done
        assert len(done.stderr.strip().splitlines()) == 1 or code == 2, done.stderr
    fails(1, "nothing", FOLDER / "nothing")
    fails(2, "--port", MODEL, "--port", "70000")
    fails(1, "cannot listen", MODEL, "--host", "192.0.2.1")
    with Served(MODEL) as server:
        fails(1, "cannot listen", MODEL, "--port", server.port)


with Served(MODEL) as server:
    check_addresses(server)
    check_inference(server)
    check_files(server)
    check_metrics(server)
    check_together(server)
check_wide_experts()
check_token()
check_limits()
check_full_queue()
check_like_predict()
check_refusals()
