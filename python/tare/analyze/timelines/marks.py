"""What happened at a moment of a run: marks on its timeline, and where the generator's windows lie on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tare.analyze.numbers import number_at
from tare.monitors import OF_SUT
from tare.run.record import RunRecord
from tare.run.usage.driven import Span, driving, spans_of
from tare.store.trace import Trace


@dataclass(frozen=True)
class Placed:
    """A window as a record tells it, and where it lies."""

    span: Span
    told: Mapping[str, Any]


def windows_of(run: RunRecord, zero_s: float | None) -> tuple[Placed, ...]:
    """The windows of a run, in seconds since `zero_s` on the trace's clock; without those that tell no end."""
    known = [
        each for each in (run.measurement or {}).get("windows") or () if number_at(each, ("end_s",)) is not None
    ]
    spans = spans_of([float(each["end_s"]) for each in known], windows_began(run, zero_s))
    return tuple(Placed(span, each) for span, each in zip(spans, known, strict=True))


def windows_began(run: RunRecord, zero_s: float | None) -> float:
    """When the generator began to measure, in seconds since `zero_s` on the trace's clock.

    0 where a record does not tell, as older ones do not: its windows are then taken to begin with the phase.
    """
    drove = driving(run.usage)
    return 0.0 if drove is None or zero_s is None else drove.began_s - zero_s


def placed_by(run: RunRecord) -> str | None:
    """How that is known: `generator` or `end`, as in `run.driven.Driven`; `None` where a record does not tell."""
    told = ((run.usage or {}).get("driven") or {}).get("by")
    return None if told is None else str(told)


@dataclass(frozen=True)
class Mark:
    """`second`, and `until` of what lasts: since measuring began. `kind`: of what it is, in a word or two.

    `work`: the server did it by itself and wrote for it, so that it belongs with the disk's line.
    """

    kind: str
    second: float
    text: str
    until: float | None = None
    work: bool = False


@dataclass(frozen=True)
class Seen:
    """What marks are read from. `zero_s`: when measuring began on the trace's clock, `over_s`: how long it took."""

    run: RunRecord
    trace: Trace | None
    zero_s: float
    over_s: float | None

    @property
    def places(self) -> bool:
        """Whether anything tells where second 0 is on the trace's clock."""
        return self.over_s is not None or self.trace is not None


Source = Callable[[Seen], Iterator[Mark]]
"""A source yields nothing of a run that it has nothing to say of."""

_TOLD = {
    "missed": "the probe missed ticks",
    "suspended": "the machine slept",
    "dropped": "the probe dropped rows",
}
"""Event of a trace → what it means: docs/reference/trace-format.md."""
_MIB = float(1 << 20)
_TROUBLES = ("errors", "reconnects")
_ENDED = re.compile(f"{OF_SUT}|^proxy$")
"""Whose processes must not end while measuring."""


def marks_of(seen: Seen) -> tuple[Mark, ...]:
    """All marks of a run, in the order in which they happened."""
    found = (mark for source in SOURCES.values() for mark in source(seen))
    return tuple(sorted(found, key=lambda mark: (mark.second, mark.kind)))


def of_trace(seen: Seen) -> Iterator[Mark]:
    """Gaps of the recording; server or docker-proxy ending while it was measured."""
    events = None if seen.trace is None else seen.trace.table("event")
    if events is None:
        return
    for row in events.sort("at_ns").iter_rows(named=True):
        second = round(row["at_ns"] / 1e9 - seen.zero_s, 2)
        if row["what"] in _TOLD:
            yield Mark("recording", second, f"{_TOLD[row['what']]}: {row['detail']}")
        elif row["what"] == "vanished" and _ENDED.match(row["name"]) and _while_measuring(second, seen):
            yield Mark("process", second, f"{row['name']} ended: {row['detail']}")


def _while_measuring(second: float, seen: Seen) -> bool:
    """A tick of the probe before the end: a program that is itself the SUT ends with the phase."""
    slack = 0.0 if seen.trace is None else 2 * seen.trace.period_ns / 1e9
    return seen.over_s is not None and 0 <= second < seen.over_s - slack


def of_windows(seen: Seen) -> Iterator[Mark]:
    """Errors and reconnects as the generator counted them, a mark for each row of windows that have any."""
    for troubled, group in groupby(windows_of(seen.run, seen.zero_s), key=lambda one: bool(_troubles(one.told))):
        row = list(group)
        if troubled:
            worst = {what: max(_troubles(one.told).get(what, 0.0) for one in row) for what in _TROUBLES}
            told = ", ".join(f"up to {rate:g} {what}/s" for what, rate in worst.items() if rate)
            yield Mark("errors", round(row[0].span.began_s, 2), told, until=round(row[-1].span.ended_s, 2))


def _troubles(window: Mapping[str, Any]) -> Mapping[str, float]:
    """What → how many a second, without what there was none of, or is not known."""
    found = {what: number_at(window, (f"{what}_per_s",)) for what in _TROUBLES}
    return {what: rate for what, rate in found.items() if rate}


def of_duet(seen: Seen) -> Iterator[Mark]:
    """When the two sides of a duet exchanged their CPUs."""
    duet: Mapping[str, Any] = seen.run.duet or {}
    began, ended = (number_at(duet, (key,)) for key in ("swap_began_s", "swap_ended_s"))
    if began is not None and ended is not None and seen.places:
        second, until = (round(at - seen.zero_s, 2) for at in (began, ended))
        yield Mark("duet", second, "the CPU sets were exchanged", until=until)


def of_chronicle(seen: Seen) -> Iterator[Mark]:
    """What the server told of its own work: compactions. One of which only the end is known is a moment."""
    for event in (seen.run.chronicle or {}).get("events") or () if seen.places else ():
        ended, began = (number_at(event, (f"{end}_monotonic_s",)) for end in ("ended", "began"))
        if ended is None:
            continue
        moved = [
            f"{amount / _MIB:.3g} MiB {way}"
            for way in ("read", "written")
            if (amount := number_at(event, (f"{way}_bytes",))) is not None
        ]
        kind, node = str(event.get("kind")), event.get("node")
        at = f" at {node}" if node else ""
        yield Mark(
            kind,
            round((ended if began is None else began) - seen.zero_s, 2),
            ": ".join(filter(None, [f"{kind} of {event.get('name')}{at}", ", ".join(moved)])),
            until=None if began is None else round(ended - seen.zero_s, 2),
            work=True,
        )


SOURCES: Mapping[str, Source] = {
    "trace": of_trace,
    "windows": of_windows,
    "duet": of_duet,
    "chronicle": of_chronicle,
}
"""Where marks come from; what else happens in a run is one more source."""
