"""Hooks of mkdocs (mkdocs.yml), which sees docs/ only. README.md becomes the first page, and every file of the repository
that a page links to becomes a page or a file of the site, so that each link can be followed and checked.

docs/build.md stays build.md; what is outside of docs/ goes below repository/: CONTRIBUTING.md to
repository/CONTRIBUTING.md, and sparsight/moe/losses/targets.h, as a listing, to repository/sparsight/moe/losses/targets.h.md.
"""
import os
import pathlib
import re

from mkdocs.structure.files import File, InclusionLevel

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIRST_PAGE = ROOT / "README.md"
REACHED_BY_LINKS = InclusionLevel.NOT_IN_NAV
CODE = re.compile(r"^( *)(```|~~~).*?^\1\2|`[^`\n]+`", re.M | re.S)
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
MAX_LISTED_BYTES = 64 * 1024
LANGUAGES = {".h": "cpp", ".hpp": "cpp", ".cpp": "cpp", ".c": "c", ".py": "python", ".toml": "toml", ".txt": "cmake"}


def site_path(path):
    """Where a file or folder of the repository is on the site."""
    if path == FIRST_PAGE:
        return "index.md"
    if path.is_relative_to(ROOT / "docs"):
        return str(path.relative_to(ROOT / "docs"))
    listed = path.is_dir() or is_listed(path)
    return f"repository/{path.relative_to(ROOT)}" + ("/index.md" if path.is_dir() else ".md" if listed else "")


def is_listed(path):
    return path.suffix in LANGUAGES and path.stat().st_size <= MAX_LISTED_BYTES


def outside_code(text, replace):
    """`text` with LINK replaced where it is no code."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(replace, text[end:code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, LINK.sub(replace, text[end:])])


def linked_files(path):
    """The existing files that a page of the repository links to."""
    found = []
    outside_code(path.read_text(), lambda link: found.append((path.parent / link[1]).resolve()) or "")
    return [file for file in found if file.exists() and file.is_relative_to(ROOT)]


def page_text(path):
    """The page of a file outside of docs/, before its links are rewritten."""
    if path.suffix == ".md":
        return path.read_text()
    title = f"---\nsearch: {{exclude: true}}\n---\n\n# {path.relative_to(ROOT)}\n\n"
    if path.is_dir():
        names = sorted(entry.name + "/" * entry.is_dir() for entry in path.iterdir() if not entry.name.startswith("__"))
        return title + "".join(f"- `{name}`\n" for name in names)
    return f"{title}~~~~ {LANGUAGES[path.suffix]}\n{path.read_text()}\n~~~~\n"


def on_files(files, config):
    waiting = [FIRST_PAGE, *sorted((ROOT / "docs").rglob("*.md"))]
    seen = set(waiting)
    for path in waiting:
        name = site_path(path)
        if not path.is_relative_to(ROOT / "docs"):
            given = {"content": page_text(path)} if name.endswith(".md") else {"abs_src_path": str(path)}
            files.append(File.generated(config, name, inclusion=REACHED_BY_LINKS, **given))
        if path.suffix == ".md":
            new = [file for file in linked_files(path) if file not in seen]
            seen.update(new)
            waiting += [file for file in new if file.is_dir() or not file.is_relative_to(ROOT / "docs")]
    return files


def repository_path(uri):
    """The inverse of site_path, for pages written in Markdown."""
    if uri == "index.md":
        return FIRST_PAGE
    return ROOT / uri.removeprefix("repository/") if uri.startswith("repository/") else ROOT / "docs" / uri


def on_page_markdown(markdown, page, config, files):
    source = repository_path(page.file.src_uri)
    if not source.exists():  # a listing
        return markdown

    def rewritten(link):
        target = (source.parent / link[1]).resolve()
        if not target.exists() or not target.is_relative_to(ROOT):
            return link[0]  # mkdocs says so
        return os.path.relpath(site_path(target), os.path.dirname(page.file.src_uri) or ".") + (link[2] or "")

    return outside_code(markdown, rewritten)
