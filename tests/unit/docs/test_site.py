"""The docs site has every page, at its place in one of the reader's paths, and its API page names what exists."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tools.docs_site import INDEX, ROOT, Section, as_toml, navigation, shown, stage

DOCS = ROOT / "docs"


def pages_of(sections: list[Section]) -> Iterator[str]:
    for section in sections:
        for below in section.values():
            if isinstance(below, str):
                yield below
            else:
                yield from pages_of(below)


def test_the_navigation_is_the_index_with_each_page_once() -> None:
    index = "\n".join(
        [
            "## Decide", "Not [this](a.md).", "- [One](tutorial.md): and",
            "  [two](../README.md), [one](tutorial.md)", "### Below", "- [Three](x.md)",
        ]
    )  # fmt: skip
    assert navigation(index) == [
        {"Home": "README.md"},
        {"All pages": "docs/index.md"},
        {"Decide": [{"One": "docs/tutorial.md"}, {"Below": [{"Three": "docs/x.md"}]}]},
    ]


def test_every_page_of_the_docs_is_in_the_navigation() -> None:
    listed = set(pages_of(navigation(INDEX.read_text(encoding="utf-8"))))
    examples = {f"docs/examples/{name}/README.md" for name in ("plugin", "runtimes")}
    assert {str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md")} - listed == examples


def test_readers_choose_between_three_paths() -> None:
    names = [next(iter(section)) for section in navigation(INDEX.read_text(encoding="utf-8"))]
    assert names == ["Home", "All pages", "Decide", "Publish", "Gate", "Reference", "Working on tare"]


def test_the_navigation_is_toml() -> None:
    sections: list[Section] = [{'A "word"': [{"B\N{LATIN SMALL LETTER E WITH ACUTE}": "b.md"}]}, {"C": "c.md"}]
    assert tomllib.loads(f"nav = {as_toml(sections)}")["nav"] == sections


def test_a_link_to_a_folder_is_text_and_code_stays() -> None:
    text = "[g](../grafana) [i](index.md#decide) [s](https://example.org/x)\n```\n[g](../grafana)\n```\n"
    assert shown(INDEX, text) == text.replace("[g](../grafana) [i]", "g [i]")


def test_pages_and_the_files_that_they_link_to_are_staged(tmp_path: Path) -> None:
    stage(tmp_path)
    staged = {str(path.relative_to(tmp_path / "docs")) for path in (tmp_path / "docs").rglob("*") if path.is_file()}
    settings = tomllib.loads((tmp_path / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert set(pages_of(settings["nav"])) <= staged
    assert {"README.md", "docs/images/report.png", "docs/examples/gate/study.yaml"} <= staged


def test_the_api_page_names_what_exists() -> None:
    names = re.findall(r"^::: (\S+)$", (DOCS / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) >= 9
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute) or import_module(name)
