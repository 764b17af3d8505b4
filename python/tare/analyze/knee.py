"""Knee of a sweep: the fewest threads for full throughput, and the threads for a share of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tare.analyze.metrics import METRICS, PRIMARY
from tare.record.emulated import emulated_arms, sides_of
from tare.record.observation import Side
from tare.record.run_record import RunRecord
from tare.study.model import Study

NEARLY_ALL = 0.05
"""Full load: the fewest threads whose throughput is within this share of the maximum; a plateau has no peak."""


@dataclass(frozen=True)
class Point:
    """One number of threads over its good runs: means, and minimum and maximum of throughput.

    `sut_busy`, `client_busy`: share of the CPU time available to the side; `None` if not recorded.
    """

    threads: int
    runs: int
    throughput_per_s: float | None
    low: float | None
    high: float | None
    latency_p95_ms: float | None
    sut_busy: float | None
    client_busy: float | None


@dataclass(frozen=True)
class Knee:
    """Knee of a sweep. `full`: threads at full load; `None` if fewer than two numbers of threads have a good run.

    `rising`: throughput was still rising at the highest number of threads, so full load lies beyond.
    `shares`: share of the throughput at full load → threads that give it, interpolated linearly.
    """

    points: tuple[Point, ...]
    full: int | None
    rising: bool
    shares: Mapping[float, int]
    emulated: tuple[Side, ...] = ()
    """Sides that ran on an emulated CPU in any run."""

    def at(self, threads: int) -> Point:
        """Point of a number of threads; raises `KeyError` if there is none."""
        for point in self.points:
            if point.threads == threads:
                return point
        raise KeyError(threads)


def knee_of(study: Study, records: Sequence[RunRecord], shares: Sequence[float] = ()) -> Knee:
    """Estimate the knee from the runs of a sweep; see `plan.sweep`."""
    points = tuple(_point(arm.name, int(arm.levels["threads"]), records) for arm in study.arms)
    curve = [(point.threads, point.throughput_per_s) for point in points if point.throughput_per_s is not None]
    sides = sides_of(emulated_arms(records))
    if len(curve) < 2:
        return Knee(points, None, rising=False, shares={}, emulated=sides)
    most = max(rate for _, rate in curve)
    full, at_full = next((threads, rate) for threads, rate in curve if rate >= (1 - NEARLY_ALL) * most)
    wanted = {share: _threads_for(share * at_full, curve) for share in shares}
    return Knee(points, full, rising=full == curve[-1][0], shares=wanted, emulated=sides)


def _threads_for(rate: float, curve: Sequence[tuple[int, float]]) -> int:
    """Threads for a rate, interpolated linearly: in a closed loop, throughput is nearly proportional at first."""
    before, did = 0, 0.0
    for threads, reached in curve:
        if reached >= rate:
            return max(1, round(before + (threads - before) * (rate - did) / (reached - did)))
        before, did = threads, reached
    return curve[-1][0]


def _point(arm: str, threads: int, records: Sequence[RunRecord]) -> Point:
    good = [record for record in records if record.arm == arm and record.outcome.ok]
    rates = _known(METRICS[PRIMARY].of(record) for record in good)
    return Point(
        threads=threads,
        runs=len(rates),
        throughput_per_s=fmean(rates) if rates else None,
        low=min(rates, default=None),
        high=max(rates, default=None),
        latency_p95_ms=_mean(METRICS["latency_p95"].of(record) for record in good),
        sut_busy=_mean(_busy(record, "sut") for record in good),
        client_busy=_mean(_busy(record, "client") for record in good),
    )


def _busy(record: RunRecord, side: str) -> float | None:
    if (usage := record.usage) is None:
        return None
    is_sut, seconds = side == "sut", usage.over_s
    used, cpus = (usage.sut_cpu_s, usage.sut_cpus) if is_sut else (usage.client_cpu_s, usage.client_cpus)
    return used / (cpus * seconds) if used is not None and cpus and seconds else None


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return fmean(known) if known else None
