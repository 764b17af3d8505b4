"""Cutting a log into its reports: a loop over settings appends one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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
    """Lines of one report, those of a block together. `first`: number of its first line. `ranks`: its stages."""

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


@cache
def any_of(patterns: tuple[re.Pattern[str], ...]) -> re.Pattern[str]:
    """Pattern of the lines that one of the patterns matches: most lines match none, which one match tells."""
    return re.compile("|".join(f"(?:{each.pattern})" for each in patterns))


def in_blocks(text: str, alike: re.Pattern[str]) -> list[str]:
    """Lines of a text, of which neighbours that are `alike` stay one text; the last follows the last line end."""
    lines, at = list[str](), 0
    for block in alike.finditer(text):
        lines += text[at : block.start()].split("\n")[:-1]
        lines.append(block.group().removesuffix("\n"))
        at = block.end()
    return lines + text[at:].split("\n")


def cut(lines: Sequence[str], stages: Sequence[Stage]) -> Iterator[Part]:
    """Cut a log, whose lines may be blocks, where a line is out of order: there the next report begins."""
    begin, first, ranks, highest, before = 0, 1, set[int](), -1, -1
    belongs = any_of(tuple(stage.pattern for stage in stages)).match
    for n, line in enumerate(lines):
        if not belongs(line):
            before = -1
            continue
        if before >= 0 and not stages[before].once and stages[before].pattern.match(line):
            continue  # one more of many lines alike
        rank = before = next(each for each, stage in enumerate(stages) if stage.pattern.match(line))
        if rank < highest or (rank == highest and stages[rank].once):
            part = tuple(lines[begin:n])
            yield Part(first, part, frozenset(ranks))
            first += sum(each.count("\n") + 1 for each in part)
            begin, ranks, highest = n, set(), -1
        ranks.add(rank)
        highest = max(highest, rank)
    yield Part(first, tuple(lines[begin:]), frozenset(ranks))


def stated(lines: Iterable[str], patterns: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """What the beginnings of lines state: name of a pattern → its group where it matches first."""
    says: dict[str, str] = {}
    states = any_of(tuple(patterns.values())).match
    for line in lines:
        if not states(line):
            continue
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
