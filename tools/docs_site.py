"""Build the docs site in build/site: the project's Markdown pages, with search and the Python API.

    python -m tools.docs_site

Pages lie in the site as in the project, so links between them hold. The navigation is docs/index.md: each heading
is a section, each link of its lists a page.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
START = ROOT / "README.md"
INDEX = ROOT / "docs" / "index.md"
FENCE = re.compile(r"(^[ ]*```.*?^[ ]*```[ ]*$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
Section = dict[str, "list[Section] | str"]
"""Title → a page, or what is below it."""


def pages() -> dict[Path, str]:
    """Every page that can be reached from the README and the index, as it is shown, by its place in the project."""
    found: dict[Path, str] = {}
    waiting = [START, INDEX]
    while waiting:
        page = waiting.pop()
        if page not in found:
            text = page.read_text(encoding="utf-8")
            waiting += [each for each in linked(page, text) if each.suffix == ".md"]
            found[page] = shown(page, text)
    return found


def linked(page: Path, text: str) -> Iterator[Path]:
    """Files of the project that a page links to."""
    for prose in FENCE.split(text)[::2]:
        for match in LINK.finditer(prose):
            target = _target(page, match["target"])
            if target is not None and target.is_file():
                yield target


def shown(page: Path, text: str) -> str:
    """The page's text without links to folders, which a site does not list."""

    def kept(match: re.Match[str]) -> str:
        target = _target(page, match["target"])
        return match["text"] if target is not None and target.is_dir() else match[0]

    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(kept, prose) for prose in parts[::2]]
    return "".join(parts)


def _target(page: Path, link: str) -> Path | None:
    """File or folder of a relative link; None for another page's address and for a heading of this one."""
    name = link.partition("#")[0]
    return None if not name or re.match(r"[a-z][a-z+.-]*:", name) else (page.parent / name).resolve()


def navigation(index: str) -> list[Section]:
    """Sections of docs/index.md, each page once, at its first link."""
    sections: list[Section] = [{"Home": "README.md"}, {"All pages": "docs/index.md"}]
    seen = {START, INDEX}
    outer: list[Section] = []
    below = outer
    for line in index.splitlines():
        if line.startswith("## "):
            below = outer = []
            sections.append({line[3:]: outer})
        elif line.startswith("### "):
            below = []
            outer.append({line[4:]: below})
        elif line.startswith(("- ", "  ")):
            for match in LINK.finditer(line):
                page = _target(INDEX, match["target"])
                if page is not None and page.suffix == ".md" and page not in seen:
                    seen.add(page)
                    below.append({match["text"]: str(page.relative_to(ROOT))})
    return sections


def as_toml(value: Section | list[Section] | str) -> str:
    """As an inline value of TOML."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = (f"{as_toml(key)} = {as_toml(below)}" for key, below in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return "[" + ", ".join(map(as_toml, value)) + "]"


def stage(target: Path) -> None:
    """Write the pages and the files that they link to into `target`/docs, the site's configuration beside it."""
    shutil.rmtree(target / "docs", ignore_errors=True)
    found = pages()
    files = {each for page, text in found.items() for each in linked(page, text)} - set(found)
    for path in (*found, *files):
        place = target / "docs" / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path in found:
            place.write_text(found[path], encoding="utf-8")
        else:
            shutil.copyfile(path, place)
    settings = (ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8")
    nav = as_toml(navigation(INDEX.read_text(encoding="utf-8")))
    (target / "zensical.toml").write_text(settings.replace("nav = []", f"nav = {nav}"), encoding="utf-8")


def main() -> int:
    """Stage and build; a warning is an error."""
    stage(BUILD)
    argv = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", "zensical.toml"]
    return subprocess.run(argv, cwd=BUILD, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
