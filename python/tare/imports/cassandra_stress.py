"""The report of cassandra-stress as somebody else has kept it."""

from __future__ import annotations

from tare.workloads import Measurement, Window
from tare.workloads.cassandra_stress_measurement import TimedFrom, latency, must_be_whole, operations_of
from tare.workloads.cassandra_stress_output import TOTAL, read_output


def measurement_of_cassandra_stress(text: str, max_error_share: float) -> Measurement:
    """What the report tells. Raises `RunFailed` where it is cut short, tells of a failure or of too many errors.

    3.11 does not say whether a rate was `fixed=`, from the intended send, or `throttle=`: it is then not known.
    """
    printed = read_output(text)
    totals = must_be_whole(printed, max_error_share)
    timed_from: TimedFrom | None = "actual-send" if printed.rate_per_s is None else None
    return Measurement(
        operations=totals[-1].operations,
        unit="operations",
        duration_s=totals[-1].figures["time_s"],
        throughput_per_s=printed.results["op_rate"][TOTAL],
        queries_per_s=None,
        errors=int(printed.results["errors"][TOTAL]),
        reconnects=0,
        latency=latency(printed, TOTAL, timed_from),
        histogram=(),
        windows=tuple(
            Window(
                end_s=each.figures["time_s"],
                throughput_per_s=each.figures["op_rate"],
                latency_p95_ms=each.figures["p95_ms"],
                errors_per_s=0.0,
                reconnects_per_s=0.0,
            )
            for each in totals
        ),
        by_operation=operations_of(printed, totals[-1].operations, timed_from),
    )
