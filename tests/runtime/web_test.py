"""The page of WebAssembly (./dev build wasm) in a headless Chromium: a frozen model and a picture are chosen as a user
does, and the answer is that of the native program: the class, its probability to 1e-5 of itself, and the expert of
each patch. The page makes no requests, fits on 360 pixels, and says in one line what is wrong with a file."""
import base64
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, "tests/support")
from chromium import Chromium, find_browser  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"])
PAGE = pathlib.Path("build/wasm/sparsight.html").resolve()
RELATIVE_ERROR = 1e-5

for needed, why in [(PAGE.exists(), f"{PAGE.name} does not exist: ./dev build wasm builds it, with Debian's emscripten"),
                    ((BUILD / "runtime/sparsight-run").exists(), "this build has no sparsight-run to compare with"),
                    (find_browser(), "no chromium on the PATH (or set SPARSIGHT_BROWSER)")]:
    if not needed:
        print(why)
        sys.exit(77)
temporary = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(temporary.name)


def write_png(path, width, height, seed):
    """A picture of smooth colours with some noise, RGB."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            seed = (seed * 1103515245 + 12345) % 2**31
            noise = seed >> 26
            rows += bytes([(5 * x + noise) % 256, (3 * y + 2 * x + noise) % 256, (7 * y + noise) % 256])
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks))


def write_model(name, *options):
    path = FOLDER / name
    subprocess.run([BUILD / "tests/sparsight_write_small_vit", path, *options], check=True)
    return path


def native(model, picture):
    done = subprocess.run([BUILD / "runtime/sparsight-run", model, picture, "--json", "--routing", "--top", "5"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def best_experts(routing):
    """The expert with the largest gate of each patch."""
    patches = routing["chosen"][routing["prefix_tokens"]:]
    return [max(choices, key=lambda choice: choice[1])[0] if choices else -1 for choices in patches]


def text(browser, name):
    return browser.evaluate(f"(e => e.hidden ? '' : e.textContent)(document.getElementById('{name}'))")


def choose(browser, name, path, is_fine=True):
    browser.evaluate("document.getElementById('status').textContent = ''; error.hidden = results.hidden = true")
    browser.choose(f"#{name}", path.resolve())
    browser.wait_for("!error.hidden || !results.hidden || "
                     "/Choose a (model|picture)/.test(document.getElementById('status').textContent)")
    assert (text(browser, "error") == "") == is_fine, text(browser, "error")


def compare(browser, model, picture):
    expected = native(model, picture)
    rows = browser.evaluate("[...document.querySelectorAll('#classes tr')].map(r => "
                            "[+r.dataset.label, +r.dataset.probability, r.cells[0].textContent, r.cells[1].textContent])")
    assert len(rows) == len(expected["classes"]) == 5, rows
    for (label, probability, name, shown), want in zip(rows, expected["classes"]):
        assert (label, name) == (want["label"], want["class"]), (rows, expected["classes"])
        assert abs(probability - want["probability"]) <= RELATIVE_ERROR * want["probability"], (probability, want)
        assert shown == f"{100 * probability:.1f} %", shown
    layers = browser.evaluate("[...document.querySelectorAll('#layer option')].map(o => o.textContent)")
    assert layers == list(expected["routing"]), layers
    for number, layer in enumerate(layers):
        browser.evaluate(f"layer.selectedIndex = {number}; layer.dispatchEvent(new Event('input')); 0")
        compare_tints(browser, best_experts(expected["routing"][layer]), expected["routing"][layer]["grid"])
    return max(abs(row[1] / want["probability"] - 1) for row, want in zip(rows, expected["classes"]))


def compare_tints(browser, experts, grid):
    """What is drawn, against the picture without tints: each patch has moved to the colour that the legend gives it."""
    assert json.loads(browser.evaluate("canvas.dataset.experts")) == experts
    colours = browser.evaluate("Object.fromEntries([...document.querySelectorAll('#legend li')].map(item => "
                               "[item.dataset.expert, getComputedStyle(item.firstChild).backgroundColor.match(/\\d+/g)"
                               ".slice(0, 3).map(Number)]))")
    assert {int(expert) for expert in colours} == set(experts), colours
    pixels = []
    for strength in (0, 50):
        browser.evaluate(f"strength.value = {strength}; strength.dispatchEvent(new Event('input')); 0")
        pixels.append(browser.evaluate(
            f"(() => {{ const [rows, columns] = {grid}, c = canvas.getContext('2d'); return Array.from({{length: rows * columns}},"
            "(_, i) => [...c.getImageData(((i % columns) + 0.1) * canvas.width / columns,"
            "(Math.floor(i / columns) + 0.1) * canvas.height / rows, 1, 1).data].slice(0, 3)) })()"))
    for plain, tinted, expert in zip(*pixels, experts):
        wanted = [(a + b) / 2 for a, b in zip(plain, colours[str(expert)])]
        assert all(abs(a - b) <= 3 for a, b in zip(tinted, wanted)), (expert, plain, tinted, wanted)


def drop(browser, *paths):
    """What a user drops on the page, all at once."""
    files = ", ".join(f"new File([Uint8Array.from(atob('{base64.b64encode(path.read_bytes()).decode()}'), c => c.charCodeAt(0))],"
                      f"{json.dumps(path.name)})" for path in paths)
    browser.evaluate(f"error.hidden = results.hidden = true; (data => {{ for (const file of [{files}]) data.items.add(file);"
                     "document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))"
                     "})(new DataTransfer())")
    browser.wait_for("!error.hidden || !results.hidden && model.info.classes > 0 && "
                     f"document.getElementById('picture-name').textContent === {json.dumps(paths[0].name)}")


def refuses(browser, name, path, words):
    """One line says what is wrong, and no answer is shown."""
    choose(browser, name, path, is_fine=False)
    error = text(browser, "error")
    assert words in error and "\n" not in error, error
    assert browser.evaluate("results.hidden"), "an answer is shown beside an error"


def check_errors(browser, model, picture):
    whole = model.read_bytes()
    damaged = FOLDER / "damaged.sparsight"
    damaged.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    refuses(browser, "model", damaged, "damaged")
    cut = FOLDER / "cut.sparsight"
    cut.write_bytes(whole[:len(whole) // 2])
    refuses(browser, "model", cut, "the model in memory")
    refuses(browser, "model", picture, "is not a frozen model")
    choose(browser, "model", model)
    assert not browser.evaluate("results.hidden")
    broken = FOLDER / "broken.png"
    broken.write_bytes(picture.read_bytes()[:60])
    refuses(browser, "picture", broken, "broken.png: the browser cannot decode this picture")


def check_keyboard(browser):
    """Tab reaches every control, and arrow keys change the layer."""
    browser.evaluate("document.activeElement.blur(); document.getElementById('model').focus()")
    reached = []
    for _ in range(4):
        reached.append(browser.evaluate("document.activeElement.id"))
        browser.press("Tab", 9)
    assert reached == ["model", "picture", "layer", "strength"], reached
    browser.evaluate("layer.selectedIndex = 0; layer.dispatchEvent(new Event('input')); layer.focus()")
    before = browser.evaluate("canvas.dataset.experts")
    browser.press("ArrowDown", 40)
    assert browser.evaluate("layer.selectedIndex") == 1 and browser.evaluate("canvas.dataset.experts") != before


square, wide = FOLDER / "square.png", FOLDER / "wide.png"
write_png(square, 64, 64, 1)
write_png(wide, 90, 50, 2)
per_token, per_image = write_model("per_token.sparsight", "1", "--per-token"), write_model("per_image.sparsight", "2")
dense = write_model("dense.sparsight", "3", "--routed", "0")
with Chromium(find_browser()) as browser:
    browser.open(PAGE.as_uri())
    browser.wait_for("document.getElementById('status').textContent === 'Choose a model and a picture.'")
    choose(browser, "model", per_token)
    worst = 0
    for picture in (square, wide, pathlib.Path("tests/compat/0.1.0/image.png")):
        choose(browser, "picture", picture)
        worst = max(worst, compare(browser, per_token, picture))
    check_keyboard(browser)
    # A resize of 90 x 50 to 36 by the shorter side and the centre of 32 x 32 leave a square in the middle.
    side = 50 * 32 / 36
    for region, want in zip(browser.evaluate("visibleRegion(steps, model.info, 90, 50)"),
                            [(90 - side) / 2, (50 - side) / 2, side, side]):
        assert abs(region - want) < 0.01, (region, want)
    choose(browser, "model", per_image)
    compare(browser, per_image, pathlib.Path("tests/compat/0.1.0/image.png"))
    browser.resize(360, 800)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 360, "wider than a telephone"
    check_errors(browser, per_token, square)
    choose(browser, "model", dense)
    choose(browser, "picture", wide)
    compare(browser, dense, wide)
    assert text(browser, "note") == "This model has no layers with experts."
    drop(browser, square, per_token)
    compare(browser, per_token, square)
    assert set(browser.requests) <= {PAGE.as_uri(), "data:,"}, browser.requests
    problems = [problem for problem in browser.problems if "getImageData" not in problem]  # this test's own readings
    assert problems == [], problems
    # The test sees what it looks for: a request that the page may not make.
    browser.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/picture.png'})); 0")
    browser.wait_for("true")
    assert any("127.0.0.1:9" in problem for problem in browser.problems), browser.problems
print(f"probabilities differ from those of sparsight-run by at most {worst:.1e} of themselves")
