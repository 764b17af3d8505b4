"""Latency by load: how each rate of a climb changed an arm's latency, over all its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tare.analyze.numbers import number_at
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
    rates = [sustained for run in good if (sustained := _sustained(run)) is not None]
    bounds = {(str(each["quantile"]), float(each["within_ms"])) for each in rates}
    if len(bounds) != 1:
        return None
    quantile, within_ms = bounds.pop()
    return Climb(
        quantile=quantile,
        within_ms=within_ms,
        rate_per_s=median(float(each["rate_per_s"]) for each in rates),
        steps=tuple(_steps([each["rungs"] for each in rates])),
    )


def has_climbed(run: RunRecord) -> bool:
    """Whether the run searched for a sustainable rate."""
    return run.measurement is not None and run.measurement.get("sustained") is not None


def _sustained(run: RunRecord) -> Mapping[str, Any] | None:
    if number_at(run.measurement, ("sustained", "rate_per_s")) is None or run.measurement is None:
        return None
    sustained: Mapping[str, Any] = run.measurement["sustained"]
    return sustained


def _steps(climbs: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[Step]:
    by_rate: dict[float, list[Mapping[str, Any]]] = {}
    for rungs in climbs:
        for rung in rungs:
            by_rate.setdefault(float(rung["rate_per_s"]), []).append(rung)
    for rate in sorted(by_rate):
        known = [float(rung["latency_ms"]) for rung in by_rate[rate] if rung["latency_ms"] is not None]
        silent = 2 * len(known) < len(by_rate[rate])
        yield Step(rate, None if silent else median(known), sum(int(rung["missed"]) for rung in by_rate[rate]))
