"""Cutting a log into its reports: a loop over settings appends one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.figures import Figures


@dataclass(frozen=True)
class Stage:
    """Lines that reports have at one place of their order. `once`: no report has two."""

    pattern: re.Pattern[str]
    once: bool = True


@dataclass(frozen=True)
class Part:
    """Lines of one report. `first`: number of its first line. `ranks`: which stages of a report occur."""

    first: int
    lines: tuple[str, ...]
    ranks: frozenset[int]

    @property
    def text(self) -> str:
        """The report alone."""
        return "\n".join(self.lines) + "\n"


def rank_of(line: str, stages: Sequence[Stage]) -> int | None:
    """Which stage a line belongs to; `None` if to none."""
    return next((n for n, stage in enumerate(stages) if stage.pattern.match(line)), None)


def cut(lines: Sequence[str], stages: Sequence[Stage]) -> Iterator[Part]:
    """Cut a log where a line is out of order: there the next report begins."""
    begin, ranks, highest = 0, set[int](), -1
    for n, line in enumerate(lines):
        rank = rank_of(line, stages)
        if rank is None:
            continue
        if rank < highest or (rank == highest and stages[rank].once):
            yield Part(begin + 1, tuple(lines[begin:n]), frozenset(ranks))
            begin, ranks, highest = n, set(), -1
        ranks.add(rank)
        highest = max(highest, rank)
    yield Part(begin + 1, tuple(lines[begin:]), frozenset(ranks))


def stated(lines: Iterable[str], patterns: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """What the beginnings of lines state: name of a pattern → its group where it matches first."""
    says: dict[str, str] = {}
    for line in lines:
        for name, pattern in patterns.items():
            if match := pattern.match(line):
                says.setdefault(name, match.group(1))
    return says


def report_of(
    part: Part, says: Mapping[str, str], read: Callable[[], Figures], distortions: tuple[str, ...] = ()
) -> Report:
    """The report of a part, or why its figures cannot be read."""
    try:
        figures = read()
    except RunFailed as error:
        return Report(None, str(error), says, part.first, part.text)
    return Report(figures.measurement(), None, says, part.first, part.text, distortions)
