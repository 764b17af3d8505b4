"""BenchBase, and OLTP-Bench before it: `*.summary.json`; the table of transactions is in `benchbase_raw`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.benchbase_raw import is_raw, raw_reports
from tare.imports.parsers.figures import Figures, Times, number_in

_RATE = "Throughput (requests/second)"
_SAYS: Mapping[str, str] = {
    "terminals": "terminals",
    "scale": "scalefactor",
    "isolation": "isolation",
    "test": "Benchmark Type",
    "database": "DBMS Type",
    "version": "DBMS Version",
}
_LEAST_GOOD = 0.95
"""TPC-C itself rolls 1 % of its new orders back."""


class Benchbase:
    """Summaries of BenchBase, and its tables of transactions."""

    title: ClassVar[str] = "BenchBase (summary.json, raw.csv)"
    says: ClassVar[tuple[str, ...]] = (*_SAYS, "phase", "log")

    def recognises(self, text: str) -> bool:
        """A key that only its summary has, or the heading of its table."""
        return is_raw(text) or (f'"{_RATE}"' in text and "Latency Distribution" in text)

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:  # noqa: ARG002 - it counts no errors
        """The one summary of the file, or each phase of a table."""
        if is_raw(text):
            yield from raw_reports(text)
            return
        try:
            tree = json.loads(text)
        except ValueError as error:
            yield Report(None, f"its JSON is cut short: {error}", text=text)
            return
        if not isinstance(tree, dict):
            yield Report(None, "it has no summary of BenchBase", text=text)
            return
        says = {name: str(tree[key]) for name, key in _SAYS.items() if tree.get(key) not in (None, "")}
        try:
            figures = _figures(tree)
        except RunFailed as error:
            yield Report(None, str(error), says, text=text)
            return
        good, rate = figures.details.get("goodput_per_s"), figures.throughput
        failing = good is not None and rate is not None and good < _LEAST_GOOD * rate
        yield Report(
            figures.measurement(), None, says, text=text, distortions=("failures-counted",) if failing else ()
        )


def _figures(tree: Mapping[str, Any]) -> Figures:
    rate, goodput = number_in(tree, _RATE), number_in(tree, "Goodput (requests/second)")
    if rate is None:
        raise RunFailed(f"it lacks {_RATE!r}")
    if rate <= 0:
        raise RunFailed("no request a second")
    told = tree.get("Latency Distribution")
    latencies = told if isinstance(told, Mapping) else {}

    def milliseconds(name: str) -> float | None:
        value = number_in(latencies, f"{name} Latency (microseconds)")
        return None if value is None or value < 0 else value / 1e3

    elapsed, count = number_in(tree, "Elapsed Time (nanoseconds)"), number_in(tree, "Measured Requests")
    started = number_in(tree, "Start timestamp (milliseconds)")
    return Figures(
        throughput=rate,
        latency=Times(
            milliseconds("Average"),
            milliseconds("Minimum"),
            milliseconds("Maximum"),
            milliseconds("Median"),
            milliseconds("95th Percentile"),
            milliseconds("99th Percentile"),
            blind=True,
        ),
        unit="requests",
        operations=None if count is None else int(count),
        duration_s=None if elapsed is None else elapsed / 1e9,
        errors=None,
        details={} if goodput is None else {"goodput_per_s": goodput},
        started_at=None if started is None else started / 1e3,
    )
