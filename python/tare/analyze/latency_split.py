"""Parts of each arm's latency: how much is due to the client, and how much to wire and server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tare.record.measurement import LatencyParts
from tare.record.run_record import RunRecord

PERCENTILES = ("p50", "p99", "p99.9")


@dataclass(frozen=True)
class LatencySplit:
    """Medians over an arm's good runs: parts as in `workloads.LatencyParts`, and the client's share."""

    lag_ms: float
    waiting_ms: float
    server_ms: float
    unread_ms: float
    client: float


def client_share(run: RunRecord, percentile: str) -> float | None:
    """Client's share of the latency around a percentile; `None` if the generator did not measure parts."""
    parts = _parts(run, percentile)
    return None if parts is None else _client_share(parts)


def _client_share(parts: LatencyParts) -> float:
    """Parts that the client adds by itself; requests also wait if the server is slower than the arrivals."""
    return (parts.lag_ms + parts.unread_ms) / parts.total_ms


def latency_split_of(good: Sequence[RunRecord]) -> Mapping[str, LatencySplit]:
    """Percentile → parts over the good runs of one arm; empty if no run has parts."""
    apart = [run for run in good if has_latency_parts(run)]
    return {percentile: one for percentile in PERCENTILES if (one := _around(apart, percentile)) is not None}


def _around(good: Sequence[RunRecord], percentile: str) -> LatencySplit | None:
    split = [parts for run in good if (parts := _parts(run, percentile)) is not None]
    if not split:
        return None
    lag, waiting, server, unread = (
        median(column)
        for column in zip(
            *((one.lag_ms, one.waiting_ms, one.server_ms, one.unread_ms) for one in split), strict=True
        )
    )
    return LatencySplit(lag, waiting, server, unread, client=median(map(_client_share, split)))


@dataclass(frozen=True)
class Missed:
    """Arrivals of an arm's good runs that were never sent, and all that were scheduled."""

    missed: int
    scheduled: int


def has_details(run: RunRecord) -> bool:
    """Whether the run's measurement has `details`."""
    return run.measurement is not None and bool(run.measurement.details)


def missed_of(good: Sequence[RunRecord]) -> Missed | None:
    """Missed arrivals over all good runs; `None` for closed loops."""
    pairs = [
        (run.measurement.details.get("missed"), run.measurement.details.get("scheduled"))
        for run in good
        if run.measurement is not None
    ]
    known = [(missed, scheduled) for missed, scheduled in pairs if missed is not None and scheduled is not None]
    if not known:
        return None
    return Missed(round(sum(missed for missed, _ in known)), round(sum(scheduled for _, scheduled in known)))


def has_latency_parts(run: RunRecord) -> bool:
    """Whether the generator reported parts of the run's latency."""
    return run.measurement is not None and bool(run.measurement.parts)


def _parts(run: RunRecord, percentile: str) -> LatencyParts | None:
    """Parts around a percentile; `None` if they are unknown, or all are 0."""
    parts = run.measurement and run.measurement.parts.get(percentile)
    return parts if parts is not None and parts.total_ms > 0 else None
