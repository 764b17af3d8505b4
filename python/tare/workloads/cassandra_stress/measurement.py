"""Turn the output of cassandra-stress into a measurement, or raise the reason why it is incomplete."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tare.errors import RunFailed
from tare.workloads import Latency, Measurement, Operation, Window
from tare.workloads.cassandra_stress.output import EARLY_S, TOTAL, Interval, Printed

if TYPE_CHECKING:
    from tare.workloads.cassandra_stress.histograms import Histograms

_NEEDED = ("op_rate", "mean_ms", "median_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "partitions", "errors")
_TICK_S = 0.15
"""Tolerance of times, which are printed to a tenth of a second."""
_LONGEST_REASON = 300
_NOTHING = "Data returned was not validated"
"""Message of cassandra-stress that also stands for a missing row."""


TimedFrom = Literal["intended-send", "actual-send"]


@dataclass(frozen=True)
class Expected:
    """What was requested. `timed_from`: `None` if unknown, which counts as blind to stalls.

    `operations`: of a load. `seconds`, `window_s`: of a measure phase.
    """

    operations: int | None = None
    seconds: float = 0.0
    rate_per_s: float | None = None
    window_s: float = 1.0
    timed_from: TimedFrom | None = "actual-send"
    max_error_share: float = 0.0


def must_be_whole(printed: Printed, max_error_share: float) -> tuple[Interval, ...]:
    """Lines of all operations. Raises `RunFailed` if the report is cut short, or has failures or errors."""
    if printed.complaints or (printed.exceptions and (max_error_share == 0 or not printed.ended)):
        raise _failed(f"cassandra-stress: {' / '.join((*printed.exceptions[:1], *printed.complaints[:1]))}")
    if missing := [name for name in _NEEDED if name not in printed.results]:
        if not printed.results:
            last = "" if printed.last is None else f": {printed.last}"
            raise _failed(f"cassandra-stress's report is missing or cut short{last}")
        raise RunFailed(f"cassandra-stress's report is cut short: it lacks {', '.join(missing)}")
    totals = tuple(each for each in printed.intervals if each.kind == TOTAL)
    if not totals or not printed.ended:
        raise RunFailed("cassandra-stress's report is cut short")
    operations, errors = totals[-1].operations, printed.results["errors"][TOTAL]
    if not errors <= max_error_share * operations:  # NaN is no count
        why = "" if printed.failed is None else f": {printed.failed}"
        raise _failed(f"{errors:g} errors in {operations} operations{why}")
    _must_be_of_its_kinds(printed, operations)
    return totals


def _failed(what: str) -> RunFailed:
    hint = "a read found nothing: is `population` within the loaded `records`?" if _NOTHING in what else None
    return RunFailed(_one_line(what), hint=hint)


def _must_be_of_its_kinds(printed: Printed, operations: int) -> None:
    """Raise `RunFailed` unless the kinds add up to all operations; the last line of each kind has its total."""
    last = {each.kind: each.operations for each in printed.intervals if each.kind != TOTAL}
    if last and sum(last.values()) != operations:
        counts = ", ".join(f"{count} {kind}" for kind, count in last.items())
        raise RunFailed(f"cassandra-stress's report is cut short: {counts} are not its {operations} operations")


@dataclass(frozen=True)
class Logged:
    """Histograms of the latency and, with a schedule, of the service time; `None` if there are none."""

    latency: Histograms | None = None
    service_time: Histograms | None = None


def must_have_done(printed: Printed, asked: Expected) -> tuple[Interval, ...]:
    """Lines of all operations. Raises `RunFailed` unless the report is complete, with all requested operations."""
    totals = must_be_whole(printed, asked.max_error_share)
    operations = totals[-1].operations
    if asked.operations is not None and operations != asked.operations:
        raise RunFailed(f"cassandra-stress did {operations} operations of {asked.operations}")
    if operations == 0:
        raise RunFailed("the server did not answer in the measure phase: cassandra-stress ended no operation")
    return totals


def measurement(printed: Printed, asked: Expected, logged: Logged | None = None) -> Measurement:
    """Make the measurement. Raises `RunFailed` unless the report is complete and without errors.

    cassandra-stress starts operations for exactly the requested time. How long they took to end after that is known
    only to a second, so the duration is the larger of the requested time and its clock without the first second.
    """
    logged = logged or Logged()
    totals = must_have_done(printed, asked)
    operations, reported_s = totals[-1].operations, totals[-1].figures["time_s"]
    if reported_s < asked.seconds - _TICK_S:
        raise RunFailed(f"cut short: {reported_s:.1f} s of {asked.seconds:g} s")
    seconds = max(reported_s - EARLY_S, asked.seconds)
    rate, ended_at = operations / seconds, None if logged.latency is None else logged.latency.ended_at
    for each in (logged.latency, logged.service_time):
        if each is not None and each.count() != operations:
            raise RunFailed(f"cassandra-stress's log of histograms has {each.count()} of {operations} operations")
    return Measurement(
        operations=operations,
        unit="operations",
        duration_s=seconds,
        throughput_per_s=rate,
        queries_per_s=None,
        errors=int(printed.results["errors"][TOTAL]),
        reconnects=None,
        latency=_logged_latency(logged.latency, TOTAL) or latency(printed, TOTAL, asked.timed_from),
        histogram=() if logged.latency is None else logged.latency.buckets(),
        windows=tuple(_windows(totals, asked.window_s, reported_s - seconds)),
        details=_details(asked, rate),
        by_operation=operations_of(printed, operations, asked.timed_from, logged),
        started_at=None if ended_at is None else ended_at - (reported_s - EARLY_S),
    )


def _logged_latency(histograms: Histograms | None, kind: str) -> Latency | None:
    return None if histograms is None else histograms.latency(kind)


def operations_of(
    printed: Printed, total: int, timed_from: TimedFrom | None, logged: Logged | None = None
) -> Mapping[str, Operation]:
    """Kind of operation → figures. `total`: number of all operations, which is the count of a single kind."""
    logged = logged or Logged()
    kinds = [kind for kind in printed.results["mean_ms"] if kind != TOTAL]
    operations = {}
    for kind in kinds:
        lines = [each for each in printed.intervals if each.kind == kind]
        partitions = printed.results.get("partitions", {}).get(kind, 0.0)
        alone = total if len(kinds) == 1 else int(partitions)
        operations[kind.lower().replace("_", "-")] = Operation(
            operations=lines[-1].operations if lines else alone,
            errors=int(printed.results["errors"].get(kind, 0.0)),
            latency=_logged_latency(logged.latency, kind) or latency(printed, kind, timed_from),
            service_time=_logged_latency(logged.service_time, kind),
            histogram=() if logged.latency is None else logged.latency.buckets(kind),
        )
    return operations


def latency(printed: Printed, kind: str, timed_from: TimedFrom | None) -> Latency:
    """Latency of one kind or of all; a figure that is missing or not a number is `None`."""

    def one(name: str) -> float | None:
        value = printed.results.get(name, {}).get(kind)
        return value if value is not None and math.isfinite(value) else None

    return Latency(
        mean_ms=one("mean_ms"),
        min_ms=None,
        max_ms=one("max_ms"),
        p50_ms=one("median_ms"),
        p95_ms=one("p95_ms"),
        p99_ms=one("p99_ms"),
        resolution=None,
        blind_to_stalls=timed_from != "intended-send",
        timed_from=timed_from,
    )


def _windows(totals: Sequence[Interval], width: float, early_s: float) -> Iterator[Window]:
    """Yield whole windows from the first whole second; the last line may cover a shorter time.

    `early_s`: seconds by which its clock began early, which its first line includes.
    """
    last, done = 0, 0
    for line in totals:
        place, operations = line.figures["time_s"] / width, line.figures["op_rate"] * width
        if abs(place - round(place)) * width < _TICK_S and math.isfinite(operations):
            if abs(line.operations - done - operations) <= width / 2 + 1:  # else a lost line had operations
                ends = (n * width - EARLY_S for n in range(last + 1, round(place)))
                yield from (_empty_window(end_s) for end_s in ends if end_s > 0)
            last = round(place)
            windows = window(line, last * width - EARLY_S)
            if last > 1:
                yield windows
            elif width > EARLY_S:
                yield replace(windows, throughput_per_s=operations / (width - early_s))
        done = line.operations


def _empty_window(end_s: float) -> Window:
    """Window in which no operation ended; cassandra-stress prints no line for it."""
    return Window(end_s, throughput_per_s=0.0, latency_p95_ms=None, errors_per_s=0.0, reconnects_per_s=None)


def window(line: Interval, end_s: float) -> Window:
    """Window of a line. Without operations, the percentile is printed as 0.0; errors have no rate in the output."""
    figures = line.figures
    known = figures["op_rate"] > 0 and math.isfinite(figures["p95_ms"])
    return Window(
        end_s=end_s,
        throughput_per_s=figures["op_rate"],
        latency_p95_ms=figures["p95_ms"] if known else None,
        errors_per_s=0.0 if figures["errors"] == 0 else None,
        reconnects_per_s=None,
    )


def _details(asked: Expected, rate: float) -> dict[str, float]:
    if asked.rate_per_s is None:
        return {}
    return {"target_per_s": asked.rate_per_s, "delivered_share": rate / asked.rate_per_s}


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
