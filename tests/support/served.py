"""A `sparsight serve` that a test starts and asks: requests by http.client, and raw bytes by sockets."""
import base64
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading

BUILD = pathlib.Path(os.environ["BUILD"])
PROGRAM = os.environ.get("SPARSIGHT_PROGRAM", str(BUILD / "cli/sparsight"))
SANITIZED = "SPARSIGHT_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text()


def has_server():
    """Whether this build has an HTTP server (cpp-httplib)."""
    return "cpp_httplib_FOUND:INTERNAL=1\n" in (BUILD / "CMakeCache.txt").read_text()


def write_model(path, *options):
    """A small vision transformer of random weights, frozen."""
    subprocess.run([BUILD / "tests/sparsight_write_small_vit", path, *options], check=True)
    return path


class Served:
    """The server, at a port of its own; ends with SIGTERM, after which `code` is its exit code."""

    def __init__(self, model, *options, token=None):
        environment = {key: value for key, value in os.environ.items() if key != "SPARSIGHT_TOKEN"}
        if token:
            environment["SPARSIGHT_TOKEN"] = token
        self.token, self.code, self.log = token, None, []
        self.process = subprocess.Popen([PROGRAM, "serve", model, "--port", "0", *map(str, options)],
                                        stderr=subprocess.PIPE, text=True, env=environment)
        self.port = None
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"serving (\S+) at http://127\.0\.0\.1:(\d+)", line):
                self.name, self.port = found[1], int(found[2])
                break
        assert self.port, f"the server does not start: {''.join(self.log)}"
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.stop()
        assert kind or self.code == 0, (self.code, self.log)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.code = self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def connection(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """The status, the headers and the body of the answer."""
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        one = connection or self.connection()
        one.request(method, path, body=body, headers=headers)
        answer = one.getresponse()
        text = answer.read()
        if not connection:
            one.close()
        return answer.status, answer.headers, text

    def json(self, method, path, body=None, status=200, **options):
        """The JSON of an answer with that status; of an error: its one line."""
        got, headers, text = self.ask(method, path, body, **options)
        assert got == status, (got, text[:1000])
        assert headers["Content-Type"] == "application/json", headers["Content-Type"]
        answer = json.loads(text)
        if status >= 400:
            assert list(answer) == ["error"] and "\n" not in answer["error"], answer
            return answer["error"]
        return answer

    def raw(self, data, seconds=20, close=True):
        """What comes back for these bytes, until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            try:
                connection.sendall(data)
                if close:
                    connection.shutdown(socket.SHUT_WR)
                answer = b""
                while piece := connection.recv(65536):
                    answer += piece
            except (ConnectionResetError, BrokenPipeError):
                return b""
            return answer

    def metrics(self):
        """{line without its value: value} of /metrics."""
        _, _, text = self.ask("GET", "/metrics")
        lines = [line.rsplit(" ", 1) for line in text.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def memory(self):
        """Bytes of resident memory."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) << 10


def image_tensor(*files):
    """A request of the Open Inference Protocol for the bytes of these files."""
    texts = [base64.b64encode(data).decode() for data in files]
    return {"inputs": [{"name": "image", "datatype": "BYTES", "shape": [len(texts)], "data": texts}]}
