"""The report of cassandra-stress as somebody else has kept it."""

from __future__ import annotations

import math

from tare.errors import RunFailed
from tare.workloads import Measurement
from tare.workloads.cassandra_stress.measurement import TimedFrom, latency, must_be_whole, operations_of, window
from tare.workloads.cassandra_stress.output import TOTAL, Printed, read_output


def measurement_of_cassandra_stress(text: str, max_error_share: float) -> Measurement:
    """What the report tells. Raises `RunFailed` where it is cut short, tells of a failure or of too many errors.

    3.11 does not say whether a rate was `fixed=`, from the intended send, or `throttle=`: it is then not known.
    """
    printed = read_output(text)
    totals = must_be_whole(printed, max_error_share)
    operations, rate = totals[-1].operations, printed.results["op_rate"][TOTAL]
    if operations == 0 or not math.isfinite(rate):
        raise RunFailed(f"cassandra-stress did {operations} operations, {rate:g} a second")
    _must_be_all(printed, operations)
    timed_from: TimedFrom | None = "actual-send" if printed.limit_told and printed.rate_per_s is None else None
    return Measurement(
        operations=operations,
        unit="operations",
        duration_s=totals[-1].figures["time_s"],
        throughput_per_s=rate,
        queries_per_s=None,
        errors=int(printed.results["errors"][TOTAL]),
        reconnects=None,
        latency=latency(printed, TOTAL, timed_from),
        histogram=(),
        windows=tuple(
            window(each, each.figures["time_s"]) for each in totals if math.isfinite(each.figures["op_rate"])
        ),
        by_operation=operations_of(printed, operations, timed_from),
    )


def _must_be_all(printed: Printed, operations: int) -> None:
    """Without errors, and a partition an operation, the last line must tell of all of them."""
    told = {name: printed.results.get(name, {}).get(TOTAL) for name in ("partition_rate", "partitions", "errors")}
    one_each = told["partition_rate"] == printed.results["op_rate"][TOTAL] and told["errors"] == 0
    if one_each and told["partitions"] != operations:
        raise RunFailed(
            f"cassandra-stress's report is cut short: {operations} operations of {told['partitions']:g} partitions"
        )
