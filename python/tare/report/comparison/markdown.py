"""A comparison as Markdown, for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.analyze.comparison import Change
from tare.analyze.metrics import PRIMARY, metric_named
from tare.report.comparison.content import (
    READING,
    Compared,
    absolutes,
    headlines_of,
    p_value,
    shown_change,
    source,
    verdict,
)
from tare.report.figures import NONE, amount, interval, percent, point
from tare.report.markdown.text import text


def render(compared: Compared) -> str:
    """Return differences, answer, every metric and the context."""
    study = compared.a.study
    lines = [f"# {text(study.name, 80)} at scale {text(study.scale, 40)}, twice", ""]
    lines += [f"- {text(source(side, analysis), 300)}" for side, analysis in compared.sides]
    lines += ["", "## What differs between A and B", "", *_unlike(compared)]
    for side, analysis in compared.sides:
        for headline in headlines_of(side, analysis):
            sentence = text(headline.text, 600)
            lines += ["", f"**{sentence}**" if headline.grave else sentence]
    lines += ["", text(compared.answer, 2000)]
    for metric in compared.comparison.metrics:
        lines += ["", f"## Overhead: {text(metric_named(metric).title)}", "", *_table(compared, metric)]
    lines += _notes(compared)
    if compared.gate is not None:
        lines += ["", "## Gate", "", *(f"- {text(line, 400)}" for line in compared.gate.lines())]
    lines += ["", "## Context: median throughput", "", *_absolute(compared), "", text(READING, 800)]
    return "\n".join(lines) + "\n"


def _unlike(compared: Compared) -> list[str]:
    if not compared.unlike:
        return [compared.alike]
    rows = [(each.group, each.name, each.a, each.b) for each in compared.unlike]
    return ["| | what | A | B |", "|---|---|---|---|", *(_row([text(cell, 120) for cell in row]) for row in rows)]


def _table(compared: Compared, metric: str) -> list[str]:
    titles = (
        "arm",
        "n in A, B",
        "A",
        "B",
        "B against A",
        "95 % interval",
        f"p (Holm over {_family(compared, metric)})",
        "",
    )
    rows = [_row(_cells(each)) for each in compared.comparison.changes if each.metric == metric]
    return [_row(titles), "|---|" + "---:|" * 6 + "---|", *rows]


def _family(compared: Compared, metric: str) -> int:
    return max((each.family for each in compared.comparison.changes if each.metric == metric), default=1)


def _cells(change: Change) -> list[str]:
    sides = [
        f"{point(each)} {text(interval(each.estimate))}".replace(f" {NONE}", "") for each in (change.a, change.b)
    ]
    apart, bounds = shown_change(change)
    blocks = f"{change.a.estimate.n}, {change.b.estimate.n}"
    return [
        text(change.arm, 80),
        blocks,
        *sides,
        apart,
        text(bounds),
        text(p_value(change)),
        text(verdict(change), 200),
    ]


def _notes(compared: Compared) -> Iterator[str]:
    shared = compared.comparison.shared
    for label, names in (("A", shared.only_a), ("B", shared.only_b)):
        if names:
            yield ""
            yield f"Only in {label}: {', '.join(text(name, 60) for name in names)}."
    for side in (compared.a, compared.b):
        if side.unfinished is not None:
            yield ""
            yield text(f"{side.label}: {side.unfinished}. Its figures may still change.", 400)


def _absolute(compared: Compared) -> list[str]:
    rows = [
        _row([text(each.arm, 80), amount(each.a), amount(each.b), text(each.unit, 40), percent(each.ratio)])
        for each in absolutes(compared)
    ]
    return [
        f"Absolute {PRIMARY} applies only to the machine it was measured on; no interval.",
        "",
        "| arm | A | B | | B against A |",
        "|---|---:|---:|---|---:|",
        *rows,
    ]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
