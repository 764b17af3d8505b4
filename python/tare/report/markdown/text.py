"""Escape external texts for Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tare.report.plain import plain

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&@])")


def text(value: object, longest: int = 200) -> str:
    """Escape a text, so that nothing in it is Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", plain(value, longest))


def code(value: object, longest: int = 80) -> str:
    """Make a text safe between two backticks."""
    return plain(value, longest).replace("`", "'")


def table(titles: Sequence[str], rows: Sequence[Sequence[object]], left: Sequence[bool]) -> list[str]:
    """Return a table's lines; `left`: whether each column is left-aligned. Nothing without rows."""
    if not rows:
        return []
    lines = [_line(titles), "|" + "".join("---|" if each else "---:|" for each in left)]
    return lines + [_line(row) for row in rows]


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Return lines that a reader can unfold; nothing without lines."""
    return ["", f"<details><summary>{text(title)}</summary>", "", *lines, "", "</details>"] if lines else []


def fenced(words: str, language: str = "") -> list[str]:
    """Return a fenced block of code that nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", words.rstrip("\n"), fence]


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(text(cell) for cell in cells) + " |"
