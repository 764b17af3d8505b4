"""Latency by load: how each rate of a climb changed an arm's latency, over all its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tare.record.measurement import Rung
from tare.record.run_record import RunRecord


@dataclass(frozen=True)
class Step:
    """One rate over an arm's good runs.

    `latency_ms`: median of the runs' quantiles; `None` if more than half of the runs had no reply.
    `missed`: arrivals that were never sent, in all runs together.
    """

    rate_per_s: float
    latency_ms: float | None
    missed: int


@dataclass(frozen=True)
class Climb:
    """Curve of an arm by ascending rate, with the bound that the sustainable rate keeps.

    `rate_per_s`: median of the sustainable rates of the runs.
    """

    quantile: str
    within_ms: float
    rate_per_s: float
    steps: tuple[Step, ...]


def climb_of(good: Sequence[RunRecord]) -> Climb | None:
    """Curve over the good runs of one arm; `None` if no run climbed, or their bounds differ."""
    rates = [run.measurement.sustained for run in good if run.measurement and run.measurement.sustained]
    bounds = {(each.quantile, each.within_ms) for each in rates}
    if len(bounds) != 1:
        return None
    quantile, within_ms = bounds.pop()
    return Climb(
        quantile=quantile,
        within_ms=within_ms,
        rate_per_s=median(each.rate_per_s for each in rates),
        steps=tuple(_steps([each.rungs for each in rates])),
    )


def has_climbed(run: RunRecord) -> bool:
    """Whether the run searched for a sustainable rate."""
    return run.measurement is not None and run.measurement.sustained is not None


def _steps(climbs: Sequence[Sequence[Rung]]) -> Iterator[Step]:
    by_rate: dict[float, list[Rung]] = {}
    for rungs in climbs:
        for rung in rungs:
            by_rate.setdefault(rung.rate_per_s, []).append(rung)
    for rate in sorted(by_rate):
        known = [rung.latency_ms for rung in by_rate[rate] if rung.latency_ms is not None]
        silent = 2 * len(known) < len(by_rate[rate])
        yield Step(rate, None if silent else median(known), sum(rung.missed for rung in by_rate[rate]))
