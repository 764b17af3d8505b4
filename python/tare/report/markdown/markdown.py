"""The report as Markdown, to paste into an issue or a README."""

from __future__ import annotations

from collections.abc import Iterator

from tare.plural import counted
from tare.report.content import Report
from tare.report.figures import NONE, duration
from tare.report.markdown.bodies import BODIES
from tare.report.markdown.text import code, folded, table, text
from tare.report.section import Cell, Chapter, Section
from tare.report.sections.order import chapters
from tare.report.words.notes import LONGEST
from tare.report.words.summary import summary


def render(report: Report) -> str:
    """Return question, answer and all sections."""
    study = report.study
    lines = [
        f"# {text(study.question, 400)}",
        *_headlines(report),
        "",
        *_answer(report),
        "",
        f"Study `{code(study.name)}` at scale `{code(study.scale)}`: {_took(report)}.",
        "",
        *(f"- {fact.title}: {text(fact.text, 400)}" for fact in summary(report)),
    ]
    for chapter in chapters(report, "md"):
        lines += _chapter(chapter, report)
    return "\n".join(lines) + "\n"


def _chapter(chapter: Chapter, report: Report) -> list[str]:
    lines = ["", f"## {text(chapter.head.title)}", *_section(chapter.head, report)]
    for part in chapter.parts:
        lines += ["", f"### {text(part.title)}", *_section(part, report)]
    return lines


def _section(section: Section, report: Report) -> Iterator[str]:
    """Yield what is beneath the title, each part after an empty line."""
    for line in section.lead:
        yield from ("", text(line, 1200))
    if section.name in BODIES:
        yield from BODIES[section.name](report)
    if section.items:
        yield from ("", *(f"- {text(item, LONGEST)}" for item in section.items))
    lines = _table(section)
    if lines:
        yield from folded(section.fold, lines) if section.fold else ("", *lines)
    for line in section.note:
        yield from ("", text(line, 1200))


def _table(section: Section) -> list[str]:
    """Return the table; the title of a group is its rows' first cell."""
    columns, groups = section.table("md")
    if not columns:
        return []
    first = [section.columns[0].title] if section.grouped else []
    titles = [f"{column.title}, {column.unit}" if column.unit else column.title for column in columns]
    rows = [
        [*([group.title] if section.grouped else []), *map(_cell, row)] for group in groups for row in group.rows
    ]
    left = [bool(first), *(column.left for column in columns)] if first else [column.left for column in columns]
    return table([*first, *titles], rows, left)


def _cell(cell: Cell) -> str:
    return cell.text if cell.interval in ("", NONE) else f"{cell.text} {cell.interval}"


def _answer(report: Report) -> list[str]:
    if not report.answered:
        return [text(report.answer, 4000)]
    lines = [f"- {text(arm, 80)}: {text(phrase, 400)}" for arm, phrase in report.arm_lines]
    return [text(report.answer_head, 400), "", *lines]


def _headlines(report: Report) -> list[str]:
    """Return a paragraph for each headline; grave ones are bold."""
    sentences = [(text(headline.text, 600), headline.grave) for headline in report.headlines]
    return [line for sentence, grave in sentences for line in ("", f"**{sentence}**" if grave else sentence)]


def _took(report: Report) -> str:
    spent = report.spent
    blocks = counted(len(report.analysis.blocks), "block")
    if report.study.imported is not None:
        return f"{counted(spent.attempts, 'imported run')} in {blocks}"
    return f"{counted(spent.attempts, 'attempt')} in {blocks}, {duration(spent.runs_s)} of machine time"
