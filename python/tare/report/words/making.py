"""What a reader must know of how the runs were made: a pilot, a cap raised on the way, a monitor missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tare.protocols.pilot import BLOCKS, Choice
from tare.report.plain import plain
from tare.run.record import NOTHING, RunRecord


def made(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """A sentence each."""
    return (*_pilot(records), *_extended(records), *_unwatched(records))


def _pilot(records: Sequence[RunRecord]) -> Iterator[str]:
    chosen = next((record.pilot for record in records if record.pilot is not None), None)
    if chosen is None:
        return
    choice = Choice.model_validate(chosen)
    counted = "" if choice.measure_s == choice.pilot_s else "; they count like the others"
    yield f"Blocks 1 to {BLOCKS} are a pilot{counted}. After it, {choice.told}."


def _extended(records: Sequence[RunRecord]) -> Iterator[str]:
    plans = len({record.plan_digest for record in records})
    if plans > 1:
        times = "once" if plans == 2 else f"{plans - 1} times"
        yield (f"The study was extended {times}: its runs were made under {plans} plans that differ in their caps.")


def _unwatched(records: Sequence[RunRecord]) -> Iterator[str]:
    """Monitors that the study can do without, and did."""
    watched = [(name, told) for record in records for name, told in (record.monitors or {}).items()]
    missed = Counter((name, told["absent"]) for name, told in watched if told.get("absent", NOTHING) != NOTHING)
    for (name, why), runs in missed.items():
        yield f"The monitor {plain(name, 40)} did not watch {runs} of {len(records)} runs: {plain(why, 300)}."
