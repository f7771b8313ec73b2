"""A headless Chromium that a test drives: opens pages, evaluates JavaScript, and chooses files as a user does."""
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"]


def find_browser():
    """The path of Chromium (SPARSIGHT_BROWSER, or the first of the usual names on the PATH); None if there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("SPARSIGHT_BROWSER") or next(filter(None, map(shutil.which, names)), None)


class Chromium:
    """One tab. problems: messages of its console that are errors, and exceptions. requests: addresses that it asked for."""

    def __init__(self, browser, width=1000, height=1000):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_browser, self.to_us = os.pipe()
        self.from_us, to_browser = os.pipe()
        # The browser reads from its file 3 and writes to its file 4.
        launch = f'exec 3<&{self.from_us} 4>&{self.to_us} && exec "$0" "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", launch, browser, *FLAGS, f"--user-data-dir={self.profile.name}/profile", "about:blank"],
            pass_fds=(self.from_us, self.to_us), env={**os.environ, "HOME": self.profile.name},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(self.from_us)
        os.close(self.to_us)
        self.input, self.output = open(to_browser, "wb"), open(from_browser, "rb")
        self.numbers = itertools.count(1)
        self.session, self.loaded, self.problems, self.requests = None, False, [], []
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.send(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.input.close()
        self.output.close()
        self.profile.cleanup()

    def resize(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, address, seconds=60):
        self.loaded = False
        self.send("Page.navigate", url=address)
        end = time.monotonic() + seconds
        while not self.loaded and time.monotonic() < end:
            self.evaluate("0")
            time.sleep(0.05)

    def choose(self, selector, path):
        """Chooses a file in an <input type=file>."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def evaluate(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=60):
        """Until the expression is true; returns it."""
        end = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < end, f"not within {seconds} s: {expression}; problems: {self.problems}"
            time.sleep(0.05)
        return value

    def send(self, method, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.input.write(json.dumps(message).encode() + b"\0")
        self.input.flush()
        while (answer := self.read()).get("id") != number:
            self.note(answer)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def read(self):
        text = bytearray()
        while (byte := self.output.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        return json.loads(text)

    def note(self, event):
        method, given = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(given["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.problems.append(str([each.get("value") for each in given["args"]]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(given["entry"]["text"])
