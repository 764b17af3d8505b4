"""sysbench's report as somebody else has kept it: its options are not known, and its histogram mostly not there."""

from __future__ import annotations

from tare.errors import RunFailed
from tare.workloads import Latency, Measurement, Window
from tare.workloads.sysbench.measurement import RESOLUTION, percentile_ms
from tare.workloads.sysbench.output import Printed, read_output


def measurement_of_sysbench(text: str, max_error_share: float) -> Measurement:
    """What the report tells. Raises `RunFailed` where it is cut short, tells of a failure or of too many errors."""
    printed = read_output(text)
    if printed.complaints:
        raise RunFailed(f"sysbench: {printed.complaints[0]}")
    needed = ("events", "total_time_s", "latency_avg_ms", "ignored_errors")
    if missing := [name for name in needed if name not in printed.figures]:
        lacking = f"it lacks {', '.join(missing)}"
        raise RunFailed(f"sysbench's report is cut short, or none of sysbench 1.0 on a database: {lacking}")
    events, seconds, errors = (
        printed.count("events"),
        printed.figure("total_time_s"),
        printed.count("ignored_errors"),
    )
    if events == 0 or seconds <= 0:
        raise RunFailed(f"not one transaction in {seconds:g} s")
    if errors > max_error_share * events:
        raise RunFailed(f"{errors} errors in {events} transactions")
    queries = printed.figures.get("queries")
    return Measurement(
        operations=events,
        unit="transactions",
        duration_s=seconds,
        throughput_per_s=events / seconds,
        queries_per_s=None if queries is None else queries[0] / seconds,
        errors=errors,
        reconnects=int(printed.figures.get("reconnects", (0.0,))[0]),
        latency=_latency(printed, events),
        histogram=tuple((bucket.value_ms, bucket.count) for bucket in printed.histogram),
        windows=tuple(
            Window(
                end_s=float(each.end_s),
                throughput_per_s=each.tps,
                latency_p95_ms=each.latency_p95_ms if each.tps > 0 else None,
                errors_per_s=each.errors_per_s,
                reconnects_per_s=each.reconnects_per_s,
                queries_per_s=each.qps,
            )
            for each in printed.intervals
        ),
    )


def _latency(printed: Printed, events: int) -> Latency:
    """Only a run under `--rate` prints a queue; any other is a closed loop."""
    told = printed.figures
    arrivals = bool(printed.queues)
    total = told.get("latency_sum_ms")

    def percentile(number: int) -> float | None:
        printed_one = told.get(f"latency_p{number}_ms")
        return printed_one[0] if printed_one else percentile_ms(printed.histogram, number)

    return Latency(
        mean_ms=printed.figure("latency_avg_ms") if total is None else total[0] / events,
        min_ms=told.get("latency_min_ms", (None,))[0],
        max_ms=told.get("latency_max_ms", (None,))[0],
        p50_ms=percentile(50),
        p95_ms=percentile(95),
        p99_ms=percentile(99),
        resolution=RESOLUTION,
        blind_to_stalls=not arrivals,
        timed_from="intended-send" if arrivals else "actual-send",
    )
