"""Sections: one order in all formats, unique names, and columns that each format shows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.unit.analyze import synthetic
from tests.unit.report.explain import test_section
from tests.unit.report.printed import texts, titles
from tests.unit.report.test_limits_and_repetitions import MEANT
from tests.unit.report.test_limits_and_repetitions import report as repeated

from tare.report import EXPORTERS, html_page
from tare.report.content import Report, build_report
from tare.report.in_full import with_details
from tare.report.section import PAGES, Cell, Column, Format, Section
from tare.report.sections.order import chapters

FORMATS: tuple[Format, ...] = ("terminal", "html", "md")


def report() -> Report:
    made = synthetic.records()
    whole = with_details(build_report(synthetic.study(), made), made)
    return replace(whole, explanation=test_section.report().explanation)


def shown(of: Report, form: Format) -> list[Section]:
    return [section for chapter in chapters(of, form) for section in (chapter.head, *chapter.parts)]


@pytest.mark.parametrize("of", [report(), repeated(**MEANT)], ids=["usual", "repeated"])
def test_every_format_shows_the_titles_of_its_sections_in_one_order(
    of: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_page, "drawings", lambda _: {})
    everywhere = [section.name for section in shown(of, "html")]
    for form in FORMATS:
        sections = shown(of, form)
        assert [one.name for one in sections] == [name for name in everywhere if name in {s.name for s in sections}]
        text = re.sub(r"<[^>]+>", "\n", EXPORTERS[form](of)).replace("\\", "").replace("&#39;", "'")
        headings = [line.lstrip("# ") for line in text.splitlines()]
        at = -1
        for section in sections:
            at = headings.index(section.title, at + 1)


def test_names_are_anchors_and_unique() -> None:
    names = [section.name for section in shown(report(), "html")]
    assert len(names) == len(set(names)) > 10
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


def test_contents_lead_to_every_chapter() -> None:
    page = html_page.render(build_report(synthetic.study(), []))
    links = re.findall(r'<li><a href="#([a-z-]+)">', page)
    assert links[0] == "result"
    assert all(f'id="{link}"' in page for link in links)
    assert len(links) == page.count("<h2 ")


def test_a_column_prints_its_values_and_is_where_its_formats_are() -> None:
    columns = (Column("of"), Column("x", lambda x: Cell(f"{x:.1f}", "[0, 1]")), Column("y", formats=PAGES))
    section = Section("s", "S", columns, (("a", 1.0, None), ("a", None, "z"), ("b", 2.0, "")), grouped=True)
    assert titles(section, "md") == ("x", "y")
    assert texts(section, "md") == [("1.0", "—"), ("—", "z"), ("2.0", "")]
    assert texts(section, "terminal") == [("1.0",), ("—",), ("2.0",)]
    assert [group.title for group in section.table("md")[1]] == ["a", "b"]
