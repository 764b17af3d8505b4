"""Turn the output of sysbench into a measurement, or raise the reason why it is incomplete."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from tare.errors import RunFailed
from tare.workloads import Latency, Measurement, Parameters, Window
from tare.workloads.output_text import output_text
from tare.workloads.sysbench.output import Bucket, Printed, Queue, read_output
from tare.workloads.sysbench.parameters import SysbenchParameters

BUCKETS, LOWEST_MS, HIGHEST_MS = 1024, 0.001, 100_000.0
RESOLUTION = math.exp(math.log(HIGHEST_MS / LOWEST_MS) / (BUCKETS - 1)) - 1
"""Relative width of a bucket, 1.8 %: 1024 buckets at equal ratios from 0.001 to 100,000 ms (sb_logger.c)."""

text_of = partial(output_text, tool="sysbench", most_mib=64)
"""Read a file of output. Raises `RunFailed` if it is too large for a report."""
_LONGEST_REASON = 300
_PRINTED_HALF = 0.0051
"""Half of the last digit of figures with two decimals."""
TimedFrom = Literal["intended-send", "actual-send"]
_CAUSE = re.compile(r"error:? \d+|event queue is full|forcing shutdown|Cannot find benchmark")


def measurement(parameters: SysbenchParameters, stdout: Path, stderr: Path, code: int) -> Measurement:
    """Parse the output of one call. Raises `RunFailed` with the reason on one line."""
    printed, errors = read_output(text_of(stdout)), text_of(stderr)
    last_s = printed.intervals[-1].end_s if printed.intervals else 0
    must_have_ended_well(printed.complaints, last_s, errors, code)
    _must_be_whole(printed, parameters)
    _must_agree(printed)
    _must_be_free_of_errors(printed, parameters.max_error_share)
    return _measurement(printed, parameters)


def percentile_ms(histogram: Sequence[Bucket], percent: float) -> float | None:
    """Percentile as sysbench prints it; `None` in the last bucket, which also holds all slower events.

    Formula: the first bucket up to which floor(n·p/100 + 0.5) events lie (`get_pct_cumulative`, sb_histogram.c).
    """
    wanted = math.floor(sum(bucket.count for bucket in histogram) * percent / 100 + 0.5)
    seen = 0
    for bucket in histogram:
        seen += bucket.count
        if seen >= wanted:
            return bucket.value_ms if bucket.value_ms < HIGHEST_MS else None
    return None


def must_have_ended_well(complaints: Sequence[str], last_s: float, errors: str, code: int) -> None:
    """Raise `RunFailed` with sysbench's reason if it failed. `last_s`: end of the last window; `errors`: stderr."""
    if complaints:
        cause = next((line for line in complaints if _CAUSE.search(line)), complaints[0])
        raise RunFailed(f"sysbench: {_one_line(cause.partition(': ')[2])}")
    if code == 0:
        return
    by = code - 128 if 128 < code < 128 + signal.NSIG else -code
    if by > 0:
        name = signal.Signals(by).name if by in signal.valid_signals() else f"signal {by}"
        raise RunFailed(f"sysbench was ended by {name} after its report at {last_s:g} s")
    words = errors.strip().splitlines()
    raise RunFailed(f"sysbench ended with {code}: {_one_line(words[-1]) if words else 'it gave no reason'}")


def _must_be_whole(printed: Printed, parameters: SysbenchParameters) -> None:
    if not printed.started:
        raise RunFailed("sysbench never started its threads")
    if printed.missing:
        raise RunFailed(f"sysbench's report is cut short: it lacks {', '.join(printed.missing)}")
    seconds, asked = printed.figure("total_time_s"), parameters.measure_s
    if printed.count("events") == 0:
        raise RunFailed(f"the server did not answer in the measure phase: no transaction in {seconds:g} s")
    if seconds < asked:
        raise RunFailed(f"cut short: {seconds:g} s of {asked:g} s")
    last = printed.intervals[-1].end_s if printed.intervals else 0
    if last < due_s(parameters):
        raise RunFailed(f"cut short: the last window ends at {last} s of {asked:g} s")
    if not printed.histogram:
        raise RunFailed("sysbench printed no histogram")


def due_s(parameters: Parameters) -> float:
    """End of the last window that must be in the output, in seconds; the very last may miss the end of the run."""
    whole = math.floor(parameters.measure_s / parameters.window_s)
    return max(whole - 1, 0) * parameters.window_s


def _must_agree(printed: Printed) -> None:
    """Raise `RunFailed` if parts of the report disagree: then something was lost or misread."""
    events = printed.count("events")
    counted = sum(bucket.count for bucket in printed.histogram)
    kinds = sum(printed.count(kind) for kind in ("read", "write", "other"))
    checks = {
        "transactions": (printed.count("transactions"), events),
        "events in the histogram": (counted, events),
        "queries by kind": (kinds, printed.count("queries")),
        "queries in total": (printed.count("total"), printed.count("queries")),
    }
    for what, (actual, expected) in checks.items():
        if actual != expected:
            raise RunFailed(f"sysbench's report contradicts itself: {actual} {what}, but {expected} elsewhere")
    must_agree_on_p95(printed)


def _must_be_free_of_errors(printed: Printed, max_error_share: float) -> None:
    errors, events = printed.count("ignored_errors"), printed.count("events")
    if errors > max_error_share * events:
        raise RunFailed(
            f"{errors} errors in {events} transactions",
            hint="sysbench retried deadlocks and lock waits; `max_error_share` sets how many are acceptable",
        )
    if reconnects := printed.count("reconnects"):
        raise RunFailed(f"{reconnects} connections were lost and reopened")


def _measurement(printed: Printed, parameters: SysbenchParameters) -> Measurement:
    events, seconds = printed.count("events"), printed.figure("total_time_s")
    return Measurement(
        operations=events,
        unit="transactions",
        duration_s=seconds,
        throughput_per_s=events / seconds,
        queries_per_s=printed.count("queries") / seconds,
        errors=printed.count("ignored_errors"),
        reconnects=printed.count("reconnects"),
        latency=latency_of(printed, "actual-send" if parameters.rate is None else "intended-send"),
        histogram=tuple((bucket.value_ms, bucket.count) for bucket in printed.histogram),
        windows=_windows(printed),
        details={
            "reads": printed.figure("read"),
            "writes": printed.figure("write"),
            "other_queries": printed.figure("other"),
            "latency_sum_ms": printed.figure("latency_sum_ms"),
            "thread_events_mean": printed.figures["thread_events"][0],
            "thread_events_stddev": printed.figures["thread_events"][1],
            "thread_time_mean_s": printed.figures["thread_time_s"][0],
            "thread_time_stddev_s": printed.figures["thread_time_s"][1],
        },
    )


class Summary(Protocol):
    """The end of a report of any test of sysbench."""

    @property
    def histogram(self) -> tuple[Bucket, ...]:
        """Buckets in order."""
        ...

    def figure(self, name: str) -> float:
        """First figure of a line."""
        ...


def must_agree_on_p95(printed: Summary) -> None:
    """Raise `RunFailed` unless the 95th percentile of the histogram is the printed one."""
    p95, printed_p95 = percentile_ms(printed.histogram, 95), printed.figure("latency_p95_ms")
    if p95 is not None and abs(p95 - printed_p95) > _PRINTED_HALF:
        raise RunFailed(
            f"sysbench's report contradicts itself: p95 {p95} ms by the histogram, but {printed_p95} ms"
        )


def latency_of(printed: Summary, timed_from: TimedFrom | None = None) -> Latency:
    """Latency of the report. The mean comes from the sum, as the printed mean has only two decimals."""
    return Latency(
        mean_ms=printed.figure("latency_sum_ms") / printed.figure("events"),
        min_ms=printed.figure("latency_min_ms"),
        max_ms=printed.figure("latency_max_ms"),
        p50_ms=percentile_ms(printed.histogram, 50),
        p95_ms=percentile_ms(printed.histogram, 95),
        p99_ms=percentile_ms(printed.histogram, 99),
        resolution=RESOLUTION,
        blind_to_stalls=timed_from != "intended-send",
        timed_from=timed_from,
    )


def _windows(printed: Printed) -> tuple[Window, ...]:
    """Windows of the report. Without transactions, a window has no percentile, though sysbench prints 0.00."""
    queues: dict[int, Queue] = {queue.end_s: queue for queue in printed.queues}
    return tuple(
        Window(
            end_s=float(interval.end_s),
            throughput_per_s=interval.tps,
            latency_p95_ms=interval.latency_p95_ms if interval.tps > 0 else None,
            errors_per_s=interval.errors_per_s,
            reconnects_per_s=interval.reconnects_per_s,
            queries_per_s=interval.qps,
            queue_length=queues[interval.end_s].length if interval.end_s in queues else None,
        )
        for interval in printed.intervals
    )


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
