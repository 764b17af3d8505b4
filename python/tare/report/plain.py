"""Make external names and texts safe to show: one line, no control or direction characters, limited length."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from rich.cells import cell_len

_UNSHOWABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of controls (escape sequences, line ends), direction and zero-width marks, lone surrogates."""

_LEVEL = re.compile(r"[^-/\s]*[-/\s]+|[^-/\s]+")


def plain(text: object, longest: int = 200) -> str:
    """Return one showable line of at most `longest` characters; others become U+FFFD."""
    whole = str(text)
    cut = whole[:longest] + "…" if len(whole) > longest else whole
    return "".join("\ufffd" if unicodedata.category(each) in _UNSHOWABLE else each for each in cut)


def plain_lines(text: str, most: int = 5000) -> str:
    """Make each line of a text showable; at most `most` lines."""
    lines = text.split("\n")
    cut = [*lines[:most], f"… {len(lines) - most} more lines"] if len(lines) > most else lines
    return "\n".join(plain(line.replace("\t", "    "), 2000) for line in cut)


def distinct(names: tuple[str, ...], longest: int) -> dict[str, str]:
    """Each name → a showable label of its own, even if two long names begin alike."""
    labels: dict[str, str] = {}
    for name in names:
        label, n = plain(name, longest), 2
        while label in labels.values():
            label, n = f"{plain(name, longest)} ({n})", n + 1
        labels[name] = label
    return labels


def levels_of(name: str) -> list[str]:
    """Split an arm's name into its levels, each with its separator: `two-`, `thirds`."""
    return _LEVEL.findall(name)


def lines_of(name: str, width: int) -> Iterator[str]:
    """Break a name between levels into lines of at most `width` cells; a level that is too long stays whole."""
    line = ""
    for part in levels_of(name):
        if line and cell_len(line + part.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += part
    yield line.rstrip()
