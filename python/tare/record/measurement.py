"""What a load generator reported of a measure phase."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias, final

from pydantic import TypeAdapter

Histogram: TypeAlias = tuple[tuple[float, int], ...]
"""Pairs of a bucket's value in ms and its count, in rising order."""


@final
@dataclass(frozen=True, slots=True)
class Window:
    """One fixed interval inside the measure phase; never a replicate."""

    end_s: float
    """Its end, in seconds since the generator began to measure (`usage.driven`)."""
    throughput_per_s: float | None = None
    """Operations per second."""
    latency_p95_ms: float | None = None
    """95th percentile of its latencies."""
    errors_per_s: float | None = None
    """Errors per second; `null` if the generator does not count them, as for reconnects."""
    reconnects_per_s: float | None = None
    """Reconnects per second."""
    queries_per_s: float | None = None
    """Single statements per second."""
    queue_length: int | None = None
    """In an open loop, operations that have arrived and wait at its end."""


@final
@dataclass(frozen=True, slots=True)
class Latency:
    """Latency in milliseconds; percentiles come from a histogram with relative bucket width `resolution`."""

    mean_ms: float | None = None
    """Arithmetic mean."""
    min_ms: float | None = None
    """Least."""
    max_ms: float | None = None
    """Largest."""
    p50_ms: float | None = None
    """Median."""
    p95_ms: float | None = None
    """95th percentile."""
    p99_ms: float | None = None
    """99th percentile."""
    resolution: float | None = None
    """Relative width of the histogram's buckets."""
    blind_to_stalls: bool | None = None
    """Whether the generator times from the actual send in a closed loop (coordinated omission). Requests that a
    stalled server kept from being sent are then never timed: when a server at 1,000/s stopped for 2 s of 10 s,
    which gives a true p99 of about 1.9 s, a closed loop of sysbench reported 0.21 ms."""
    timed_from: Literal["intended-send", "actual-send"] | None = None
    """Start of the timed interval: the intended send for latency proper, the actual send for mere service time."""


@final
@dataclass(frozen=True, slots=True)
class Operation:
    """Figures of one kind of operation, if the generator distinguishes kinds."""

    operations: int | None
    """How many; `null` only in imported reports."""
    errors: int
    """How many failed."""
    latency: Latency = field(default_factory=Latency)
    """Their latency."""
    service_time: Latency | None = None
    """The same from the actual send, if `latency` is from the intended send and both were measured."""
    histogram: Histogram = ()
    """Histogram of `latency`, as that of all operations."""
    answers: Mapping[str, int] = field(default_factory=dict)
    """Return code → count, as the generator names them."""

    @property
    def done(self) -> int:
        """`operations` of a report that has it; raises `ValueError` for another."""
        return _known(self.operations)


@final
@dataclass(frozen=True, slots=True)
class LatencyParts:
    """Parts of the latency of requests around one percentile: means of `sampled` requests, which add up."""

    sampled: int
    """Number of requests."""
    lag_ms: float
    """From the intended time until the client noticed."""
    waiting_ms: float
    """From then until the request was sent, while others were in flight."""
    server_ms: float
    """Until the kernel had the reply (wire and server)."""
    unread_ms: float
    """Until the client had read the reply."""

    @property
    def total_ms(self) -> float:
        """Mean latency of these requests."""
        return self.lag_ms + self.waiting_ms + self.server_ms + self.unread_ms


@final
@dataclass(frozen=True, slots=True)
class Rung:
    """One rate of a climb."""

    rate_per_s: float
    """Requested rate."""
    done_per_s: float
    """Achieved rate."""
    latency_ms: float | None
    """Quantile of latency; `null`: no reply."""
    missed: int
    """Missed arrivals."""


@final
@dataclass(frozen=True, slots=True)
class Sustained:
    """Highest rate at which the `quantile` of latency stayed within `within_ms` and no arrival was missed."""

    rate_per_s: float
    """That rate; it lies half a step from its neighbours."""
    resolution: float
    """Relative step from a rung's rate to the next."""
    quantile: str
    """Which quantile, such as `p99`."""
    within_ms: float
    """Its bound."""
    contradicting: int
    """Number of rungs on the wrong side of `rate_per_s`."""
    rungs: tuple[Rung, ...]
    """All rates that the run tried."""


@final
@dataclass(frozen=True, slots=True)
class Encryption:
    """What encrypted connections agreed on, as the generator reports."""

    version: str
    """TLS version of the first connection, such as `TLSv1.3`."""
    cipher: str
    """Cipher of the first connection, such as `TLS_AES_256_GCM_SHA384`."""
    handshake_ms: float | None
    """Median of all handshakes."""


@final
@dataclass(frozen=True, slots=True)
class TurnCounts:
    """Measured turns of a run that took turns with other arms, as columns with an entry for each turn."""

    settled_s: tuple[float, ...]
    """Start of the measured time, in seconds since the generator began to measure."""
    ends_s: tuple[float, ...]
    """Its end."""
    operations: tuple[int, ...]
    """Operations that were meant to begin within it."""
    first_half: tuple[int, ...]
    """Those of them in its first half."""
    latency_ms: tuple[float | None, ...]
    """Their mean latency."""
    last_s: tuple[float | None, ...]
    """When the turn's last operation ended."""
    slices: tuple[tuple[int, ...], ...] | None = None
    """Operations in equal parts of the turn, from its start on, by when they were meant to begin; `null` if they
    were not asked for."""

    @property
    def seconds(self) -> float:
        """Measured time of all turns."""
        return sum(ends - settled for settled, ends in zip(self.settled_s, self.ends_s, strict=True))


@final
@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures of one measure phase, as the generator reported them.

    Reports of tools whose results were imported lack some; a run of tare's has operations, duration and throughput.
    """

    operations: int | None = None
    """Number of operations, such as transactions."""
    unit: str = "operations"
    """What is counted."""
    duration_s: float | None = None
    """By the generator's own clock."""
    throughput_per_s: float | None = None
    """Operations per second."""
    queries_per_s: float | None = None
    """Single statements per second; `null` if the workload has none."""
    errors: int | None = None
    """A good attempt has none."""
    reconnects: int | None = None
    """`null` if the generator does not count them."""
    latency: Latency = field(default_factory=Latency)
    """Latency of all kinds of operation together."""
    histogram: Histogram = ()
    """Pairs of a bucket's value in ms and its count, in rising order; the counts add up to `operations`."""
    windows: tuple[Window, ...] = ()
    """Intervals of equal length."""
    details: Mapping[str, float | None] = field(default_factory=dict)
    """Further figures of the generator; the workload's own page explains their names."""
    by_operation: Mapping[str, Operation] = field(default_factory=dict)
    """Kind of operation (lower case, words joined by hyphens: `read`, `read-modify-write`) → its figures. Empty if
    the generator does not distinguish kinds. Their counts add up to at least `operations`."""
    started_at: float | None = None
    """When the generator began to measure, perhaps seconds after its start, by its own report, in seconds since the
    epoch of its wall clock, which may have another time zone: YCSB's status lines, cassandra-stress's log of
    histograms, the time of fio's report. `null` if the generator, like sysbench, does not report it."""
    parts: Mapping[str, LatencyParts] = field(default_factory=dict)
    """`p50`, `p99`, `p99.9` → [parts of the latency](workloads/tare-load.md#parts-of-the-latency) of requests
    around that percentile. Empty for every generator but tare-load."""
    encryption: Encryption | None = None
    """What connections with [`sut.tls`](study.md#tls) agreed on. `null` in clear text, and if the generator does
    not report it."""
    sustained: Sustained | None = None
    """Result of a search for a [sustainable rate](workloads/tare-load.md#sustainable-rate), which is also
    `throughput_per_s`; the other figures cover all rates together. Else `null`."""
    turns: TurnCounts | None = None
    """For a run that took turns: what was counted in each; throughputs are then by the measured time of all turns.
    Else `null`."""

    @property
    def done(self) -> int:
        """`operations` of a report that has it; raises `ValueError` for another."""
        return _known(self.operations)


_STORED = TypeAdapter(Measurement)


def as_stored(measured: Measurement) -> Measurement:
    """Return a measurement as a store will give it back.

    Raises `ValueError` for a figure that is not finite, or not of its field's type: a plug-in may have made it.
    """
    return _STORED.validate_json(json.dumps(asdict(measured), allow_nan=False))


def _known(operations: int | None) -> int:
    if operations is None:
        raise ValueError("the report does not tell how many operations there were")
    return operations
