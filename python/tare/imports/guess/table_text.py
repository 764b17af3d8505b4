"""The form of tables in a mapping's words, and in sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tare.imports.guess.tables import TableForm
from tare.imports.headings import Figure

_MOST_SHOWN = 6
_DOUBT = "nothing says so, correct it if it is wrong"


def doubts_of(form: TableForm) -> tuple[str, ...]:
    """What somebody must confirm."""
    return tuple(f"{figure.doubt}: taken for {_taken(figure)}" for figure in form.figures if figure.doubt)


def _taken(figure: Figure) -> str:
    metric = figure.metric.replace("_", " ")
    return f"{metric} per second" if figure.unit == "/s" else f"{metric} in {figure.unit}"


def lines_of(form: TableForm, parts: Sequence[str]) -> list[str]:
    """Lines of the parser in a mapping. `parts`: names of all parts, those of the files' names first."""
    rows = form.source.first
    lines = [] if rows.delimiter == "," else [f"  delimiter: {_quoted(rows.delimiter)}"]
    if not rows.headed:
        lines.append(f"  headings: {json.dumps(rows.heading)}  # names made up, as the table has none")
    inside = list(zip(parts[len(form.names.columns) :], form.inside, strict=True))
    if form.wide:
        (figure,) = form.figures
        lines += [
            "  wide:  # guess: every cell below these headings is a run",
            f"    part: {inside[-1][0]}",
            f"    columns: {json.dumps(list(form.wide), ensure_ascii=False)}",
            f"    metric: {figure.metric}",
            f"    unit: {figure.unit}{_why(figure, 'the headings or the file names say so')}",
        ]
    elif form.value:
        lines += ["  tidy:  # guess: a row for each metric of a run", f"    metric: {_quoted(form.metric)}"]
        lines += [f"    value: {_quoted(form.value)}", "    metrics:"]
        lines += [
            f"      {each.metric}: {{text: {_quoted(each.column)}, unit: {each.unit}}}{_why(each)}"
            for each in form.figures
        ]
    else:
        lines.append("  figures:")
        lines += [
            f"    {each.metric}: {{column: {_quoted(each.column)}, unit: {each.unit}}}{_why(each)}"
            for each in form.figures
        ]
    if any(heading for _, heading in inside):
        lines.append("  parts:")
    return [*lines, *(f"    {part}: {_quoted(heading)}" for part, heading in inside if heading)]


def _why(figure: Figure, why: str = "by its heading") -> str:
    return f"  # guess: {_DOUBT if figure.doubt else why}"


def sentences_of(form: TableForm) -> list[str]:
    """What the figures are read from, and which numbers are not read."""
    if form.wide:
        (figure,) = form.figures
        lines = [f"{figure.metric} from the cells below {', '.join(map(repr, form.wide))}, in {figure.unit}"]
    else:
        where = f"rows of {form.metric!r}" if form.value else "the column"
        lines = [f"{each.metric} from {where} {each.column!r}, in {each.unit}" for each in form.figures]
    unread = form.unread
    more = f" and {len(unread) - _MOST_SHOWN} more" if len(unread) > _MOST_SHOWN else ""
    return [*lines, *([f"not read: {', '.join(map(repr, unread[:_MOST_SHOWN]))}{more}"] if unread else [])]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
