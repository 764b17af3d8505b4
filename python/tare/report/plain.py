"""Names and texts from outside, made fit to be shown: one line, no control or direction marks, not endless."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from rich.cells import cell_len

_UNSHOWABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of controls (escape sequences, line ends), direction and zero-width marks, lone surrogates."""

_LEVEL = re.compile(r"[^-/\s]*[-/\s]+|[^-/\s]+")


def plain(text: object, longest: int = 200) -> str:
    """One showable line of at most `longest` characters; what cannot be shown becomes U+FFFD."""
    whole = str(text)
    cut = whole[:longest] + "…" if len(whole) > longest else whole
    return "".join("\ufffd" if unicodedata.category(each) in _UNSHOWABLE else each for each in cut)


def plain_lines(text: str, most: int = 5000) -> str:
    """A text of several lines, each made showable; at most `most` of them."""
    lines = text.split("\n")
    cut = [*lines[:most], f"… {len(lines) - most} more lines"] if len(lines) > most else lines
    return "\n".join(plain(line.replace("\t", "    "), 2000) for line in cut)


def distinct(names: tuple[str, ...], longest: int) -> dict[str, str]:
    """Each name → a showable label of its own, although two long names may begin alike."""
    labels: dict[str, str] = {}
    for name in names:
        label, n = plain(name, longest), 2
        while label in labels.values():
            label, n = f"{plain(name, longest)} ({n})", n + 1
        labels[name] = label
    return labels


def levels_of(name: str) -> list[str]:
    """The parts of an arm's name, each with what ends it: `two-`, `thirds`."""
    return _LEVEL.findall(name)


def lines_of(name: str, width: int) -> Iterator[str]:
    """A name in lines of at most `width` cells, broken between levels; a level too long for a line stays whole."""
    line = ""
    for part in levels_of(name):
        if line and cell_len(line + part.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += part
    yield line.rstrip()
