"""cassandra-stress 3.11 and the releases that print its report: one report a file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.figures import plausible
from tare.workloads import Measurement
from tare.workloads.cassandra_stress.measurement import TimedFrom, latency, must_be_whole, operations_of, window
from tare.workloads.cassandra_stress.output import TOTAL, Printed, read_output

_THREADS = re.compile(r"^Running .*\bwith (\d+) threads", re.MULTILINE)


class CassandraStress:
    """Reports of cassandra-stress."""

    title: ClassVar[str] = "cassandra-stress 3.11"
    says: ClassVar[tuple[str, ...]] = ("threads",)

    def recognises(self, text: str) -> bool:
        """The heading of its lines, or the first line of its summary."""
        return "Partition rate" in text or ("total ops," in text and "pk/s," in text)

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:
        """The one report of the file; several, as it writes them without a number of threads, are refused."""
        threads = _THREADS.findall(text)
        says = {"threads": threads[0]} if len(threads) == 1 else {}
        try:
            measured = plausible(measurement_of_cassandra_stress(text, max_error_share))
        except RunFailed as error:
            yield Report(None, str(error), says, text=text)
        else:
            yield Report(measured, None, says, text=text)


def measurement_of_cassandra_stress(text: str, max_error_share: float) -> Measurement:
    """Make a measurement of a report. Raises `RunFailed` if it is cut short, or has a failure or too many errors.

    3.11 does not report whether a rate was `fixed=` (timed from the intended send) or `throttle=`: `timed_from` is
    unknown then.
    """
    printed = read_output(text)
    totals = must_be_whole(printed, max_error_share)
    operations, rate = totals[-1].operations, printed.results["op_rate"][TOTAL]
    if operations == 0 or not math.isfinite(rate):
        raise RunFailed(f"cassandra-stress did {operations} operations, {rate:g} a second")
    _must_be_all(printed, operations)
    timed_from: TimedFrom | None = "actual-send" if printed.reports_limit and printed.rate_per_s is None else None
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
    """Raise `RunFailed` if the last line lacks operations, as a report without errors can show."""
    totals = {name: printed.results.get(name, {}).get(TOTAL) for name in ("partition_rate", "partitions", "errors")}
    one_each = totals["partition_rate"] == printed.results["op_rate"][TOTAL] and totals["errors"] == 0
    if one_each and totals["partitions"] != operations:
        raise RunFailed(
            f"cassandra-stress's report is cut short: {operations} operations "
            f"of {totals['partitions']:g} partitions"
        )
