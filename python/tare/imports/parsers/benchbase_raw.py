"""BenchBase's `*.raw.csv`: a row for each transaction of the measured phases.

Its times of start are in seconds since 1970, whatever their heading says (`Results.writeAllCSVAbsoluteTiming`).
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.exact import exact_times, histogram_of, whole_seconds
from tare.imports.parsers.figures import Figures, Kind

_HEADING = "Transaction Type Index,Transaction Name,Start Time (microseconds),Latency (microseconds)"
_NAME, _START, _LATENCY, _PHASE = (
    "Transaction Name",
    "Start Time (microseconds)",
    "Latency (microseconds)",
    "Phase Id",
)


@dataclass(frozen=True)
class _Transaction:
    """Times in s, the start since 1970."""

    name: str
    start_s: float
    latency_s: float


def is_raw(text: str) -> bool:
    """Whether the text begins as a table of transactions does."""
    return text.startswith(_HEADING)


def raw_reports(text: str) -> Iterator[Report]:
    """Each phase of the configuration is a run."""
    try:
        phases = _phases(text)
    except RunFailed as error:
        yield Report(None, str(error), {"log": "raw"}, text=text)
        return
    if not phases:
        yield Report(None, "it has no transaction", {"log": "raw"}, text=text)
    for phase, transactions in phases.items():
        says = {"log": "raw", "phase": phase}
        try:
            figures = _figures(transactions)
        except RunFailed as error:
            yield Report(None, str(error), says, text=text)
        else:
            yield Report(figures.measurement(), None, says, text=text, distortions=("errors-uncounted",))


def _phases(text: str) -> dict[str, list[_Transaction]]:
    *lines, rest = text.split("\n")
    if rest:
        raise RunFailed("its last line has no end: the file is cut short")
    phases: dict[str, list[_Transaction]] = defaultdict(list)
    rows = csv.DictReader(io.StringIO("\n".join(lines)))
    phase_at = next((name for name in rows.fieldnames or () if name.startswith(_PHASE)), None)
    for row in rows:
        try:
            start, latency = float(row[_START]), float(row[_LATENCY])
        except (TypeError, ValueError) as error:
            raise RunFailed(f"line {rows.line_num} is no transaction of BenchBase") from error
        if not (math.isfinite(start) and math.isfinite(latency)) or latency < 0:
            raise RunFailed(f"line {rows.line_num}: a latency of {latency:g} us after {start:g} s is not plausible")
        phase = str(row.get(phase_at) or "").strip() if phase_at else ""
        phases[phase or "1"].append(_Transaction(row[_NAME], start, latency / 1e6))
    return phases


def _figures(log: list[_Transaction]) -> Figures:
    """Throughput is over the time from the first start to the last end."""
    start = min(each.start_s for each in log)
    duration = max(each.start_s + each.latency_s for each in log) - start
    if duration <= 0:
        raise RunFailed("its transactions took no time")
    kinds: dict[str, list[float]] = defaultdict(list)
    for each in log:
        kinds[each.name].append(each.latency_s)
    return Figures(
        throughput=len(log) / duration,
        latency=exact_times([each.latency_s for each in log], blind=True),
        unit="requests",
        operations=len(log),
        duration_s=duration,
        errors=None,
        windows=whole_seconds(((each.start_s + each.latency_s, each.latency_s) for each in log), start, duration),
        histogram=histogram_of(each.latency_s for each in log),
        kinds={
            _kind(name): Kind(exact_times(times, blind=True), len(times), histogram=histogram_of(times))
            for name, times in kinds.items()
        },
        started_at=start,
    )


def _kind(name: str) -> str:
    """`NewOrder` as `new-order`."""
    cut = [n for n, (one, other) in enumerate(pairwise(name), start=1) if one.islower() and other.isupper()]
    return "-".join(name[begin:end] for begin, end in pairwise([0, *cut, len(name)])).lower()
