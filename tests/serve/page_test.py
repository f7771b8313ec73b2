"""The page of `sparsight serve` in a headless Chromium: a picture is chosen and dropped as a user does, and classes,
experts of each patch and load are those that the server answers. The page fits on 360 pixels, has a light and a dark
look, is used by keyboard, asks for a token, says in one line what is wrong, and writes no error to the console."""
import base64
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, "tests/support")
from chromium import Chromium, find_browser  # noqa: E402
from served import Served, has_server, write_model  # noqa: E402

IMAGE = pathlib.Path("tests/compat/0.1.0/image.png")
SCREENSHOTS = os.environ.get("SPARSIGHT_SCREENSHOTS")  # a folder: pictures of the page are written there

for needed, why in [(has_server(), "this build has no HTTP server: cpp-httplib (libcpp-httplib-dev) is missing"),
                    (find_browser(), "no chromium on the PATH (or set SPARSIGHT_BROWSER)")]:
    if not needed:
        print(why)
        sys.exit(77)


def text(browser, name):
    return browser.evaluate(f"(e => e.hidden ? '' : e.textContent)(document.getElementById('{name}'))")


def answered(browser):
    browser.wait_for("!error.hidden || !results.hidden")


def choose(browser, path):
    browser.evaluate("error.hidden = results.hidden = true; 0")
    browser.choose("#picture", path.resolve())
    answered(browser)


def drop(browser, path):
    data = base64.b64encode(path.read_bytes()).decode()
    browser.evaluate("error.hidden = results.hidden = true; (data => { data.items.add(new File([Uint8Array.from(atob("
                     f"'{data}'), c => c.charCodeAt(0))], {json.dumps(path.name)})); document.body.dispatchEvent(new DragEvent("
                     "'drop', {dataTransfer: data, bubbles: true, cancelable: true})) })(new DataTransfer())")
    answered(browser)


def best_experts(routing):
    """The expert with the largest gate of each patch."""
    patches = routing["chosen"][routing["prefix_tokens"]:]
    return [max(choices, key=lambda choice: choice[1])[0] if choices else -1 for choices in patches]


def compare(browser, server, picture):
    """Classes, and the expert of each patch of each layer, are those of the server's answer."""
    expected = server.json("POST", "/predict?top=5&explain=true", picture.read_bytes())
    assert text(browser, "error") == "", text(browser, "error")
    rows = browser.evaluate("[...document.querySelectorAll('#classes tr')].map(r => "
                            "[+r.dataset.label, +r.dataset.probability, r.cells[0].textContent, r.cells[1].textContent])")
    want = [[entry["label"], entry["probability"], entry["class"], f"{100 * entry['probability']:.1f} %"]
            for entry in expected["classes"]]
    assert rows == want, (rows, want)
    layers = browser.evaluate("[...document.querySelectorAll('#layer option')].map(o => o.textContent)")
    assert layers == list(expected["routing"]), layers
    for number, layer in enumerate(layers):
        browser.evaluate(f"layer.selectedIndex = {number}; layer.dispatchEvent(new Event('input')); 0")
        experts = best_experts(expected["routing"][layer])
        assert json.loads(browser.evaluate("canvas.dataset.experts")) == experts
        legend = browser.evaluate("[...document.querySelectorAll('#legend li')].map(item => +item.dataset.expert)")
        assert legend == sorted(set(experts)), legend
    if not layers:
        return
    colours = browser.evaluate("new Set([...document.querySelectorAll('#legend i')].map(i => getComputedStyle(i).backgroundColor)).size")
    assert colours == len(legend), "two experts have one colour"


def check_tint(browser):
    """A stronger tint changes the picture, and none leaves it as it is."""
    def pixel(strength):
        browser.evaluate(f"strength.value = {strength}; strength.dispatchEvent(new Event('input')); 0")
        return browser.evaluate("[...canvas.getContext('2d').getImageData(3, 3, 1, 1).data]")
    assert pixel(0) != pixel(100) and pixel(0) == pixel(0)
    browser.evaluate("strength.value = 50; strength.dispatchEvent(new Event('input')); 0")


def check_load(browser, server):
    browser.wait_for("!load.hidden && document.querySelectorAll('#charts figure').length === 4")
    for _ in range(5):
        server.json("POST", "/predict", IMAGE.read_bytes())
    browser.wait_for("series.requests.some(each => each > 0) && series.images.some(each => each >= 1)")
    layers = browser.evaluate("[...document.querySelectorAll('.layer span')].map(e => e.textContent)")
    assert layers == ["blocks.4.mlp", "blocks.5.mlp"], layers
    load = {line: value for line, value in server.metrics().items() if 'layer="blocks.5.mlp"' in line}
    label = browser.evaluate("document.querySelectorAll('.bar')[1].getAttribute('aria-label')")
    share = 100 * load['sparsight_expert_assignments_total{layer="blocks.5.mlp",expert="1"}'] / sum(load.values())
    assert f"expert 1: {share:.1f} %" in label, (label, share)  # every request had the same picture


def check_keyboard(browser):
    """Tab reaches every control, and arrow keys change the layer."""
    browser.evaluate("document.getElementById('picture').focus()")
    reached = []
    for _ in range(3):
        reached.append(browser.evaluate("document.activeElement.id"))
        browser.press("Tab", 9)
    assert reached == ["picture", "layer", "strength"], reached
    browser.evaluate("layer.selectedIndex = 0; layer.dispatchEvent(new Event('input')); layer.focus()")
    before = browser.evaluate("canvas.dataset.experts")
    browser.press("ArrowDown", 40)
    assert browser.evaluate("layer.selectedIndex") == 1 and browser.evaluate("canvas.dataset.experts") != before


def screenshot(browser, name):
    if SCREENSHOTS:
        size = browser.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        data = browser.send("Page.captureScreenshot", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1})["data"]
        (pathlib.Path(SCREENSHOTS) / name).write_bytes(base64.b64decode(data))


def check_looks(browser):
    """Both looks have text that stands out from what is behind it, and fit on a telephone."""
    grounds = []
    for look in ("light", "dark"):
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": look}])
        for width in (1000, 360):
            browser.resize(width, 800)
            wide = browser.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels wide on {width}"
            screenshot(browser, f"serve_{look}_{width}.png")
        ink = browser.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).map(Number)")
        grounds.append(sum(ink) / 3)
    assert grounds[0] < 80 and grounds[1] > 170, grounds
    browser.resize(1000, 1000)


def check_errors(browser, folder):
    broken = folder / "broken.png"
    broken.write_bytes(IMAGE.read_bytes()[:60])
    choose(browser, broken)
    error = text(browser, "error")
    assert error and "\n" not in error and browser.evaluate("results.hidden"), error
    assert any("400" in problem for problem in browser.problems)  # Chromium itself notes the answer
    browser.problems[:] = [problem for problem in browser.problems if "status of 400" not in problem]


def check_token(browser, model):
    with Served(model, token="secret") as server:
        browser.open(server.address)
        browser.wait_for("!document.getElementById('token-form').hidden")
        browser.evaluate("document.getElementById('token').focus(); document.getElementById('token').value = 'secret'; 0")
        browser.press("Tab", 9)
        assert browser.evaluate("document.activeElement.tagName") == "BUTTON"
        browser.evaluate("document.activeElement.click(); 0")
        browser.wait_for("document.getElementById('token-form').hidden")
        choose(browser, IMAGE)
        compare(browser, server, IMAGE)


with tempfile.TemporaryDirectory() as name, Chromium(find_browser()) as browser:
    folder = pathlib.Path(name)
    model = write_model(folder / "vit.sparsight", "1", "--per-token")
    with Served(model) as server:
        browser.open(server.address)
        browser.wait_for("document.getElementById('status').textContent.includes('12 classes, 32 x 32 pixels')")
        choose(browser, IMAGE)
        compare(browser, server, IMAGE)
        check_tint(browser)
        drop(browser, IMAGE)
        compare(browser, server, IMAGE)
        check_load(browser, server)
        check_keyboard(browser)
        check_looks(browser)
        check_errors(browser, folder)
        others = [each for each in browser.requests if not each.startswith((server.address, "data:,"))]
        assert others == [], others
    check_token(browser, model)
    dense = write_model(folder / "dense.sparsight", "3", "--routed", "0")
    with Served(dense) as server:
        browser.open(server.address)
        choose(browser, IMAGE)
        compare(browser, server, IMAGE)
        assert text(browser, "note") == "This model has no layers with experts.", text(browser, "note")
    problems = [problem for problem in browser.problems if "getImageData" not in problem and "ERR_CONNECTION" not in problem]
    assert problems == [], problems
