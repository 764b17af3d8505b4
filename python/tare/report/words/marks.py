"""The marks of a run in words, for screen readers and for details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tare.plural import counted
from tare.report.plain import plain

if TYPE_CHECKING:
    from tare.analyze.timelines.marks import Mark  # polars is slow to import

_MOST_MARKS = 8
"""Most marks of one run, beside the server's own work."""
_MOST_WORKS = 6
_FEW = 2
"""Up to this many, works of a kind are listed singly, each with its object."""


def mark_lines(marks: Sequence[Mark]) -> tuple[str, ...]:
    """Return an entry for each mark, `1.5 to 3 s, up to 5 errors/s`; many compactions share one."""
    single = [mark for mark in marks if not mark.work]
    entries = [_one(mark) for mark in single[:_MOST_MARKS]]
    if len(single) > _MOST_MARKS:
        entries.append(f"{len(single) - _MOST_MARKS} more")
    return (*entries, *_works(marks))


def kinds_of_work(marks: Sequence[Mark]) -> tuple[str, ...]:
    """Return the kinds of the server's own work: `compactions`."""
    return tuple(dict.fromkeys(f"{plain(mark.kind, 24)}s" for mark in marks if mark.work))


def _works(marks: Sequence[Mark]) -> Iterator[str]:
    kinds: dict[str, list[Mark]] = {}
    for mark in marks:
        if mark.work:
            kinds.setdefault(mark.kind, []).append(mark)
    for kind, names in kinds.items():
        if len(names) <= _FEW:
            yield from map(_one, names)
            continue
        when = ", ".join(_when(mark) for mark in names[:_MOST_WORKS])
        more = f" and {len(names) - _MOST_WORKS} more" if len(names) > _MOST_WORKS else ""
        yield f"{counted(len(names), plain(kind, 24))}: {when}{more}"


def _one(mark: Mark) -> str:
    return f"{_when(mark)}, {plain(mark.text, 160)}"


def _when(mark: Mark) -> str:
    return f"{mark.second:g}{'' if mark.until is None else f' to {mark.until:g}'} s"
