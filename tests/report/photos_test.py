"""The photos behind the confusion matrix in a headless Chromium: a click on a cell, on its number and on a line of the
list opens them, and so do Tab, the arrow keys and Enter; Escape closes them. The page is a file, asks for nothing, fits
on 360 pixels in its light and its dark look, and writes no error to the console. Hostile names stay text."""
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

if not find_browser():
    print("no chromium on the PATH (or set SPARSIGHT_BROWSER)")
    sys.exit(77)

HOSTILE = "</script><img src=x onerror=document.title='owned'>"
CLASSES = ["cat", "dog", HOSTILE]


def png(grey):
    """A picture of one pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    data += chunk(b"IDAT", zlib.compress(bytes([0, grey]))) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


def photo(index, probability, picture=True):
    entry = {"index": index, "probability": probability, "id": f"test/{index}"}
    return {**entry, "picture": png(index)} if picture else entry


def write_run(run):
    pairs = [("cat", "dog", 3), ("dog", HOSTILE, 2), (HOSTILE, "cat", 1)]
    confused = [[photo(7, 0.9), photo(2, 0.75), photo(5, 0.5, picture=False)], [photo(1, 0.8), photo(3, 0.6)], [photo(4, 1)]]
    evaluation = {"kind": "eval", "split": "test", "step": 5, "weights": "model", "accuracy": 0.8, "loss": 0.5, "images": 30,
                  "cells": [{"class": name, "domain": "all", "images": 10, "accuracy": 0.7} for name in CLASSES],
                  "confusions": [{"true": a, "predicted": b, "images": n, "of": 10} for a, b, n in pairs]}
    cells = [{"true": a, "predicted": b, "images": n, "confused": list_} for (a, b, n), list_ in zip(pairs, confused)]
    run.mkdir()
    (run / "config.toml").write_text('[model]\nname = "vit"\n')
    (run / "env.json").write_text('{"sparsight": "0.1.0"}')
    (run / "metrics.jsonl").write_text(json.dumps(evaluation) + "\n")
    (run / "confused.json").write_text(json.dumps({"split": "test", "step": 5, "weights": "model", "images": 30, "cells": cells}))


def write_report(run):
    subprocess.run([os.environ["SPARSIGHT_PROGRAM"], "report", str(run)], check=True, stdout=subprocess.DEVNULL)
    return run / "report.html"


def shown(browser):
    """The title and the texts of the photos that are open; None without any."""
    return browser.evaluate("(p => p.hidden ? null : [p.querySelector('h3').textContent, [...p.querySelectorAll('.example')]"
                            ".map(e => e.textContent), [...p.querySelectorAll('img')].every(i => i.naturalWidth === 1)])"
                            "(document.getElementById('photos'))")


def click(browser, selector):
    box = browser.evaluate(f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); "
                           f"return [b.x + b.width / 2, b.y + b.height / 2]; }})({selector})")
    for kind in ("mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)


def check_mouse(browser):
    assert shown(browser) is None
    click(browser, "document.querySelectorAll('.photo-cell')[0]")  # its number lies above it
    browser.wait_for("document.querySelectorAll('#photos img').length === 2 && document.querySelector('#photos img').complete")
    title, photos, drawn = shown(browser)
    assert title == "cat taken for dog" and drawn, title
    assert photos == ["dog 90.0 %true: cattest/7, image 7", "dog 75.0 %true: cattest/2, image 2",
                      "dog 50.0 %true: cattest/5, image 5"], photos
    assert "Some have no picture" in browser.evaluate("document.querySelector('#photos p').textContent")
    click(browser, "document.querySelectorAll('[data-photos]')[1]")
    assert shown(browser)[0] == "dog taken for " + HOSTILE, shown(browser)
    click(browser, "document.querySelector('#photos > button')")
    assert shown(browser) is None
    assert browser.evaluate("document.activeElement.dataset.photos") == "1", "the focus goes back to where it came from"
    for node in browser.evaluate("[...document.querySelectorAll('svg .mark-rect path')].map((p, i) => [i, p.getAttribute('class')])"):
        if not node[1]:  # a cell without photos, such as one of the diagonal
            click(browser, f"document.querySelectorAll('svg .mark-rect path')[{node[0]}]")
            assert shown(browser) is None


def check_keyboard(browser):
    browser.evaluate("[...document.querySelectorAll('[data-photos]')].pop().focus()")
    for _ in range(10):
        browser.press("Tab", 9)
        if browser.evaluate("document.activeElement.classList.contains('photo-cell')"):
            break
    labels = [browser.evaluate("document.activeElement.getAttribute('aria-label')")]
    assert labels[0] and labels[0].startswith("cat taken for dog: 3 images"), labels
    browser.press("ArrowDown", 40)
    browser.press("Enter", 13)
    assert shown(browser)[0] == "dog taken for " + HOSTILE, shown(browser)
    browser.press("Escape", 27)
    assert shown(browser) is None
    assert browser.evaluate("document.activeElement.getAttribute('aria-label')").startswith("dog taken for")
    browser.press("ArrowUp", 38)
    assert browser.evaluate("document.activeElement.getAttribute('aria-label')").startswith("cat taken for dog")


def check_looks(browser):
    """A look draws the matrix again: its cells still open. Nothing is wider than a telephone."""
    for look in ("dark", "light"):
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": look}])
        for width in (1000, 360):
            browser.resize(width, 800)
            browser.wait_for("document.querySelectorAll('.photo-cell').length === 3")
            browser.evaluate("document.querySelectorAll('.photo-cell')[0].focus()")
            browser.press("Enter", 13)
            assert shown(browser)[0] == "cat taken for dog"
            wide = browser.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels wide on {width}"


with tempfile.TemporaryDirectory() as name, Chromium(find_browser()) as browser:
    run = pathlib.Path(name) / "run"
    write_run(run)
    page = write_report(run).resolve().as_uri()
    browser.open(page)
    browser.wait_for("document.documentElement.dataset.charts && document.querySelectorAll('.photo-cell').length === 3")
    check_mouse(browser)
    check_keyboard(browser)
    check_looks(browser)
    assert browser.evaluate("document.title") == "run - Sparsight report"
    assert browser.evaluate("document.getElementById('problems').hidden")
    others = [each for each in browser.requests if each != page and not each.startswith("data:")]
    assert others == [], others
    assert browser.problems == [], browser.problems
