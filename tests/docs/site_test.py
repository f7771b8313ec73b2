"""The site of ./dev docs: mkdocs builds it without a warning, every link and anchor of its pages leads somewhere on it, and
its pages load nothing from other servers."""
import html.parser
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Page(html.parser.HTMLParser):
    """links: what a reader can follow. loaded: what the browser fetches by itself. anchors: ids and names."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors.update(filter(None, (given.get("id"), given.get("name"))))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.append(given["href"])
        elif given.get("src"):
            self.loaded.append(given["src"])


def is_external(address):
    return bool(urllib.parse.urlsplit(address).scheme or urllib.parse.urlsplit(address).netloc)


def broken_links(site):
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 40, f"only {len(pages)} pages"
    for path, page in sorted(pages.items()):
        for address in page.links + page.loaded:
            if is_external(address):
                if address in page.loaded and not address.startswith("data:"):
                    yield f"{path.relative_to(site)} loads {address}"
                continue
            split = urllib.parse.urlsplit(address)
            target = (path.parent / urllib.parse.unquote(split.path)).resolve() if split.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{path.relative_to(site)}: {address} leads nowhere"
            elif split.fragment and target in pages and urllib.parse.unquote(split.fragment) not in pages[target].anchors:
                yield f"{path.relative_to(site)}: {address}: there is no such anchor"


def build(folder):
    """The messages of mkdocs, which ends with an error where there are warnings."""
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder], cwd=ROOT, text=True,
                          env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True)


def main():
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        print("mkdocs-material is not installed: ./dev docs and ./dev test install it where there is a network")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        site = pathlib.Path(name).resolve() / "site"
        done = build(site)
        assert done.returncode == 0, done.stdout + done.stderr
        broken = list(broken_links(site))
        for line in broken:
            print(line)
        for path in "index.html", "search/search_index.json", "repository/CONTRIBUTING/index.html":
            assert (site / path).exists(), path
        print(f"{len(list(site.rglob('*.html')))} pages")
    sys.exit(bool(broken))


main()
