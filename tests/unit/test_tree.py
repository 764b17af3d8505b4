"""The tree as a whole: sizes, links between documents, and nothing that belongs to one machine only."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE_LINES = 400
MOST_FILES_IN_A_FOLDER = 25
SOURCES = {".py", ".rs", ".sh", ".js", ".ts", ".yaml", ".yml", ".toml", ".j2", ".md"}
GENERATED = ("schemas/", "tests/data/", "tests/golden/")

# Written in pieces, so that this file does not find itself.
PRIVATE = re.compile(
    "|".join(
        (
            r"(?<![\w.}-])/work" + r"/(main|shared)",
            r"deb\.debian" + r"\.org",
            r"security\.debian" + r"\.org",
            r"archive\.ubuntu" + r"\.com",
            r"\bpypi" + r"\.org",
            r"files\.pythonhosted" + r"\.org",
            r"repo1\.maven" + r"\.org",
            r"registry\.npmjs" + r"\.org",
            r"index\.docker" + r"\.io",
        )
    )
)

# An exception from a rule, with nothing behind it that says why.
UNEXPLAINED = {
    ".py": re.compile(r"# (no" r"qa(: [A-Z0-9, ]+)?|type: ig" r"nore(\[[^\]]*\])?)\s*$"),
    ".rs": re.compile(r"^\s*#!?\[((allow|expect)\(.*\)|ig" r"nore)\]\s*$"),
    ".sh": re.compile(r"\|\| (true|:)\s*($|;|\))"),
}
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#+\s+(.+?)\s*#*$", re.MULTILINE)


def tracked() -> list[Path]:
    """Files that are or would be committed; one that another change just deleted is left out."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, timeout=60,
    ).stdout.decode()  # fmt: skip
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


FILES = tracked()
DOCUMENTS = [path for path in FILES if path.suffix == ".md"]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    """Anchors of a document's headings, as code hosts make them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(FENCE.sub("", text)))
    return {heading.strip().replace(" ", "-") for heading in plain}


def dead_links(document: Path, text: str) -> Iterator[str]:
    """Relative links whose file or heading is not there."""
    for link in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and target.suffix == ".md":
            there = text if target == document else target.read_text()
            if anchor not in anchors(there):
                yield f"{link}: no such heading"


def test_no_source_file_is_too_long() -> None:
    sources = [path for path in FILES if path.suffix in SOURCES and not named(path).startswith(GENERATED)]
    lengths = {named(path): len(path.read_text().splitlines()) for path in sources}
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE_LINES}


def crowded(paths: Iterable[str]) -> dict[str, int]:
    """Folders with more source files than a reader takes in."""
    counts = Counter(path.rpartition("/")[0] for path in paths)
    return {folder: count for folder, count in counts.items() if count > MOST_FILES_IN_A_FOLDER}


def test_no_folder_has_more_source_files_than_a_reader_takes_in() -> None:
    assert not crowded(named(path) for path in FILES if path.suffix in {".py", ".rs", ".sh"})


def test_a_crowded_folder_is_found() -> None:
    assert crowded([*(f"a/{n}.py" for n in range(26)), *(f"b/{n}.py" for n in range(25))]) == {"a": 26}


def test_nothing_names_this_workplace_or_a_registry() -> None:
    results = []
    for path in FILES:
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        results += [f"{named(path)}: {match.group()}" for match in PRIVATE.finditer(text)]
    assert not results


def unexplained(suffix: str, text: str) -> Iterator[int]:
    """Lines with an exception from a rule and no reason: behind it, or for a shell's in a comment just above."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        above = lines[max(0, number - 4) : number - 1] if suffix == ".sh" else []
        if UNEXPLAINED[suffix].search(line) and not any(each.lstrip().startswith("#") for each in above):
            yield number


def test_every_exception_from_a_rule_says_why() -> None:
    sources = [path for path in FILES if path.suffix in UNEXPLAINED and not named(path).startswith(GENERATED)]
    fields = {named(path): list(unexplained(path.suffix, path.read_text())) for path in sources}
    assert not {name: lines for name, lines in fields.items() if lines}, "say why, behind the exception"


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        (".py", ("a = b  # no" "qa: S101\nc = d  # no" "qa: S101 - for the type alone"), [1]),
        (".py", ("a = b  # type: ig" "nore[misc]\nc = d  # type: ig" "nore[misc]  # a partial"), [1]),
        (".rs", ("#[allow(x)]\nfn a() {}\n#[allow(x)] // for people\nfn b() {}\n#[ig" "nore]"), [1, 5]),
        (".sh", "stop || true\n# It may have ended.\nstop || true\nstop || true  # likewise", [1]),
    ],
)  # fmt: skip
def test_an_exception_without_a_reason_is_found(suffix: str, text: str, expected: list[int]) -> None:
    assert list(unexplained(suffix, text)) == expected


def test_links_of_documents_lead_somewhere() -> None:
    assert not [f"{named(path)}: {link}" for path in DOCUMENTS for link in dead_links(path, path.read_text())]


def test_every_page_can_be_reached_from_the_index() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in LINK.findall(FENCE.sub("", page.read_text())):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file():
                waiting.append(target)
    pages = {path for path in DOCUMENTS if named(path).startswith("docs/")}
    assert not {named(page) for page in pages - reached}


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    text = "# One head\n[b](b.md) [c](#no-head) [d](#one-head) [e](https://example.org/x)\n```\n[f](f.md)\n```\n"
    document.write_text(text)
    assert list(dead_links(document, text)) == ["b.md: no such file", "#no-head: no such heading"]


@pytest.mark.parametrize("text", ["see /work" + "/main/x", "https://deb.debian" + ".org/debian", "pypi" + ".org"])
def test_a_private_word_is_found(text: str) -> None:
    assert PRIVATE.search(text)


@pytest.mark.parametrize("text", ["/var/lib/tare/work/mainline", "example.org"])
def test_an_innocent_word_is_not(text: str) -> None:
    assert not PRIVATE.search(text)
