"""Reading of the runs in one file of imported results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tare.errors import RunFailed, StudyError
from tare.imports.mapping import CsvParser, MappingFile, ToolParser
from tare.imports.table import LARGEST_FIGURE, rows
from tare.run.record import to_tree
from tare.run.unreadable import read_or_failed
from tare.workloads import Latency, Measurement, Window
from tare.workloads.cassandra_stress.measurement import TimedFrom, latency, must_be_whole, operations_of, window
from tare.workloads.cassandra_stress.output import TOTAL
from tare.workloads.cassandra_stress.output import Printed as StressReport
from tare.workloads.cassandra_stress.output import read_output as read_stress
from tare.workloads.sysbench.measurement import RESOLUTION, percentile_ms
from tare.workloads.sysbench.output import Printed as SysbenchReport
from tare.workloads.sysbench.output import read_output as read_sysbench
from tare.workloads.ycsb.measurement import Expected, measurement
from tare.workloads.ycsb.output import read_output as read_ycsb

_LARGEST = 64 << 20
_PACKED: Mapping[bytes, str] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
"""First bytes of compressed files → format."""


def measurement_of_cassandra_stress(text: str, max_error_share: float) -> Measurement:
    """Make a measurement of a report. Raises `RunFailed` if it is cut short, or has a failure or too many errors.

    3.11 does not report whether a rate was `fixed=` (timed from the intended send) or `throttle=`: `timed_from` is
    unknown then.
    """
    printed = read_stress(text)
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


def _must_be_all(printed: StressReport, operations: int) -> None:
    """Raise `RunFailed` if the last line lacks operations, as a report without errors can show."""
    totals = {name: printed.results.get(name, {}).get(TOTAL) for name in ("partition_rate", "partitions", "errors")}
    one_each = totals["partition_rate"] == printed.results["op_rate"][TOTAL] and totals["errors"] == 0
    if one_each and totals["partitions"] != operations:
        raise RunFailed(
            f"cassandra-stress's report is cut short: {operations} operations "
            f"of {totals['partitions']:g} partitions"
        )


def measurement_of_sysbench(text: str, max_error_share: float) -> Measurement:
    """Make a measurement of a report. Raises `RunFailed` if it is cut short, or has a failure or many errors."""
    printed = read_sysbench(text)
    if printed.complaints:
        raise RunFailed(f"sysbench: {printed.complaints[0]}")
    needed = ("events", "total_time_s", "latency_avg_ms", "ignored_errors")
    if missing := [name for name in needed if name not in printed.figures]:
        lacking = f"it lacks {', '.join(missing)}"
        raise RunFailed(f"sysbench's report is cut short, or not of sysbench 1.0 with a database: {lacking}")
    events, seconds, errors = (
        printed.count("events"),
        printed.figure("total_time_s"),
        printed.count("ignored_errors"),
    )
    if events == 0 or seconds <= 0:
        raise RunFailed(f"no transaction in {seconds:g} s")
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


def _latency(printed: SysbenchReport, events: int) -> Latency:
    """Latency of a report. Only runs with `--rate` print a queue; all others are closed loops."""
    figures = printed.figures
    arrivals = bool(printed.queues)
    total = figures.get("latency_sum_ms")

    def percentile(number: int) -> float | None:
        printed_one = figures.get(f"latency_p{number}_ms")
        return printed_one[0] if printed_one else percentile_ms(printed.histogram, number)

    return Latency(
        mean_ms=printed.figure("latency_avg_ms") if total is None else total[0] / events,
        min_ms=figures.get("latency_min_ms", (None,))[0],
        max_ms=figures.get("latency_max_ms", (None,))[0],
        p50_ms=percentile(50),
        p95_ms=percentile(95),
        p99_ms=percentile(99),
        resolution=RESOLUTION,
        blind_to_stalls=not arrivals,
        timed_from="intended-send" if arrivals else "actual-send",
    )


@dataclass(frozen=True)
class ReadRun:
    """A run in a file: its parts, its measurement or the reason why it failed, and its raw text.

    `place`: the file, with the line for a table.
    """

    place: str
    parts: Mapping[str, str]
    measurement: Mapping[str, Any] | None
    failure: str | None
    raw: bytes


def _ycsb(text: str, max_error_share: float) -> Measurement:
    return measurement(read_ycsb(text), Expected(max_error_share=max_error_share))


TOOLS: Mapping[str, Callable[[str, float], Measurement]] = {
    "ycsb": _ycsb,
    "sysbench": measurement_of_sysbench,
    "cassandra-stress": measurement_of_cassandra_stress,
}
"""Generator → parser of its output; the second argument is the acceptable share of errors."""


def read_file(path: Path, file: MappingFile) -> Iterator[ReadRun]:
    """Yield the runs of a file: one, or one for each row of a table. Raises `StudyError` for an unreadable file."""
    raw = _bytes(path)
    if isinstance(file.parser, CsvParser):
        yield from (
            ReadRun(row.place, row.parts, row.measurement, row.failure, row.raw)
            for row in rows(raw, file.parser, str(path))
        )
    else:
        yield _one(raw, file.parser, str(path))


def _one(raw: bytes, parser: ToolParser, place: str) -> ReadRun:
    if why := _no_text(raw):
        return ReadRun(place, {}, None, why, raw)
    try:
        with read_or_failed(f"what {parser.name} printed"):
            measured = TOOLS[parser.name](raw.decode(errors="replace"), parser.max_error_share)
    except RunFailed as error:
        return ReadRun(place, {}, None, str(error), raw)
    if (figure := _impossible(asdict(measured))) is not None:
        return ReadRun(place, {}, None, f"a figure of {figure:g} is not plausible", raw)
    return ReadRun(place, {}, to_tree(measured), None, raw)


def _impossible(tree: Any) -> float | None:
    """First number that is not finite or above `LARGEST_FIGURE`; `None` if all are plausible."""
    if isinstance(tree, Mapping):
        return next((fault for each in tree.values() if (fault := _impossible(each)) is not None), None)
    if isinstance(tree, list | tuple):
        return next((fault for each in tree if (fault := _impossible(each)) is not None), None)
    return tree if isinstance(tree, float) and not abs(tree) <= LARGEST_FIGURE else None


def _no_text(raw: bytes) -> str | None:
    """Why a file cannot be the output of a program; `None` if it may be."""
    if not raw.strip():
        return "the file is empty"
    if packed := next((name for magic, name in _PACKED.items() if raw.startswith(magic)), None):
        return f"the file is compressed ({packed}): unpack it and import it again"
    return "the file is not a text file" if b"\0" in raw else None


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except OSError as error:
        raise StudyError(f"cannot read {path}: {error.strerror}") from error
    if len(raw) > _LARGEST:
        raise StudyError(f"{path} is larger than {_LARGEST >> 20} MiB", hint="is this a generator's output?")
    return raw
