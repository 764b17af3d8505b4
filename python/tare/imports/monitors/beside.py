"""Logs of monitors below a directory, and which runs each may be of: by the words of its name, and by its clock."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tare.errors import StudyError
from tare.imports.contents import sources, text_of
from tare.imports.monitors import Log
from tare.imports.monitors.registry import MONITOR_LOGS, monitor_of

_WORD = re.compile(r"[a-z]+|\d+")
_DOCKER = re.compile(r"docker[-_ ]?stats?")
_NO_WORDS = frozenset({
    *MONITOR_LOGS, "dool", "mpstat", "sadf", "csv", "log", "txt", "json", "out", "stats", "stat", "monitor",
    "monitors", "monitoring", "metrics", "system", "server", "cpu", "disk", "io",
})  # fmt: skip
"""Words of a log's name that do not tell runs apart."""
_HOUR, _QUARTER, _FARTHEST = 3600, 900, 14 * 3600
"""Offsets of time zones in s: whole hours first, then quarters."""


@dataclass(frozen=True)
class Clocked:
    """When a run took place, in s since 1970 by its own clock. `is_utc`: whether that is known to be UTC."""

    began_s: float
    ended_s: float
    is_utc: bool


@dataclass(frozen=True)
class Offset:
    """Seconds to add to a log's clock for that of the runs, and where that is known from."""

    seconds: float
    why: str
    assumed: bool = False


@dataclass(frozen=True)
class LogBeside:
    """A log. `name`: its path below the directory."""

    name: str
    tool: str
    log: Log
    sha256: str

    @property
    def words(self) -> Counter[str]:
        """Words that the names of its runs must have."""
        return words_of(self.name) - Counter(dict.fromkeys(_NO_WORDS, 9))

    @property
    def step_s(self) -> float | None:
        """Distance of its samples by its clock."""
        ends = [sample.at_s for sample in self.log.samples if sample.at_s is not None]
        steps = [later - earlier for earlier, later in itertools.pairwise(ends) if later > earlier]
        return median(steps) if steps and len(ends) == len(self.log.samples) else None


def words_of(name: str) -> Counter[str]:
    """Words and numbers of a path."""
    return Counter(word.lstrip("0") or "0" for word in _WORD.findall(_DOCKER.sub("", name.lower())))


def logs_below(directory: Path, unread: list[str]) -> Iterator[LogBeside]:
    """Yield every log of a monitor. `unread`: takes a sentence for each that cannot be read."""
    for source in sources(directory):
        try:
            raw = source.read()
            text = text_of(raw)
            tool = monitor_of(text) if text else None
            if tool is None or text is None:
                continue
            log = MONITOR_LOGS[tool].read(text)
        except StudyError:
            continue
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            unread.append(
                f"{source.name} is joined to no run: it is damaged, or no log of {tool} that is known ({error})"
            )
            continue
        if log.samples:
            yield LogBeside(source.name, tool, log, hashlib.sha256(raw).hexdigest())


def offset_of(beside: LogBeside, runs: Sequence[Clocked], given: float | None) -> Offset | None:
    """The offset of a log's clock, so that it covers most of the runs; `None` if it covers none, or several fit."""
    if given is not None:
        return Offset(given, "given by the mapping")
    zones = {run.is_utc for run in runs}
    if zones == {beside.log.is_utc}:
        known = "both clocks are UTC" if beside.log.is_utc else "both clocks are taken to be of one time zone"
        return Offset(0.0, known, assumed=not beside.log.is_utc) if _covered(beside, runs, 0.0) else None
    for step in (_HOUR, _QUARTER):
        times = {
            float(seconds): count
            for seconds in range(-_FARTHEST, _FARTHEST + 1, step)
            if (count := _covered(beside, runs, float(seconds)))
        }
        best = [seconds for seconds, count in times.items() if count == max(times.values())]
        if 0.0 in best or len(best) == 1:
            seconds = 0.0 if 0.0 in best else best[0]
            return Offset(seconds, "assumed: so the log covers the runs", assumed=True)
        if best:
            return None
    return None


def _covered(beside: LogBeside, runs: Sequence[Clocked], offset: float) -> int:
    """How many runs a log covers."""
    ends = [sample.at_s + offset for sample in beside.log.samples if sample.at_s is not None]
    step = beside.step_s
    if step is None:
        return 0
    return sum(ends[0] - 2 * step <= run.began_s and run.ended_s <= ends[-1] + 2 * step for run in runs)
