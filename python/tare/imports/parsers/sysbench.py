"""sysbench 0.4.12, 0.5, 1.0 (with its pre-releases) and 1.1: databases, cpu, fileio, memory, threads and mutex.

Formats: `print_run_mode`, `print_test_stats`/`db_print_stats` of 0.4.12 and 0.5 (sysbench.c, db_driver.c), and
`sb_report_cumulative` of 1.0 and 1.1. A log may hold several reports, as a loop over thread counts appends them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.columns import Columns
from tare.imports.parsers.cutting import Part, Stage, any_of, cut, in_blocks, rank_of, stated
from tare.imports.parsers.figures import NUMBER, Figures, Times
from tare.workloads.sysbench.measurement import RESOLUTION, percentile_ms
from tare.workloads.sysbench.output import Bucket, complaints_in, histogram_in

_BANNER = re.compile(r"sysbench v? ?(\d+\.\d+(?:\.\d+)?(?:[-.\w]*))(?::| \()")
_INTERVAL = re.compile(r"\[ *\d+s ?\] ")
_INTERVAL_LINES = re.compile(rf"^(?:{_INTERVAL.pattern}.*\n)+", re.MULTILINE)
_STAGES = (
    Stage(re.compile(r"(?:[+$#>] |\S*[$#] ?)?(?:\S+/)?sysbench\s.*\srun$")),
    Stage(_BANNER),
    Stage(re.compile(r"Running the test with following options:"), once=False),
    Stage(re.compile(r"Threads started!")),
    Stage(_INTERVAL, once=False),
    Stage(re.compile(r"(?:Latency histogram|Request response time histogram)")),
    Stage(re.compile(r"(?:SQL|OLTP test) statistics:|CPU speed:|File operations:|Total oper|Operations perf")),
    Stage(re.compile(r"(?:General statistics|Test execution summary|Throughput):"), once=False),
    Stage(re.compile(r"(?:Latency \(ms\):| +response time:| +per-request statistics:)")),
    Stage(re.compile(r"Threads fairness:")),
)
"""Lines of a report in order, after the command that a shell repeated."""
_HELD_RANK = 2
_N = NUMBER
_PLAIN = r"\d+\.?\d*"
_INTERVALS = (
    re.compile(
        rf"^\[ *(\d+)s ?\] thds: \d+ tps: ({_PLAIN}) qps: ({_PLAIN}) \(r/w/o: [^)\n]*\) "
        rf"lat \(ms,(\d+)%\): ({_PLAIN}) err/s: ({_PLAIN}) reconn/s: ({_PLAIN})",
        re.MULTILINE,
    ),
    re.compile(
        rf"^\[ *(\d+)s ?\] threads: \d+, tps: ({_PLAIN}), reads(?:/s)?: {_PLAIN}(), writes(?:/s)?: {_PLAIN}, "
        rf"response time: (?={_PLAIN}ms \((\d+)%\))({_PLAIN})ms \(\d+%\)"
        rf"(?:, errors: ({_PLAIN}), reconnects: +({_PLAIN}))?",
        re.MULTILINE,
    ),
    re.compile(rf"^\[ *(\d+)s ?\] thds: \d+ eps: ({_PLAIN})() lat \(ms,(\d+)%\): ({_PLAIN})()()", re.MULTILINE),
)
"""Lines of 1.0, 1.1 and 0.5, and of tests without a database: end, rate, queries, percentile, latency, errors and
reconnects, of which some are empty."""
_QUEUE = "] queue length: "
_LINES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "seconds": rf" *(?:total time|time elapsed): +{_N}s?",
        "events": r" *total number of events: +(\d+)",
        "taken_s": rf" *total time taken by event execution: +{_N}s?",
        "min": rf" *min: +{_N}(?:ms)?",
        "avg": rf" *avg: +{_N}(?:ms)?",
        "max": rf" *max: +{_N}(?:ms)?",
        "sum": rf" *sum: +{_N}",
        "transactions": rf" *transactions: +(\d+) +\({_N} per sec\.\)",
        "queries": rf" *queries: +(\d+) +\({_N} per sec\.\)",
        "rw_requests": rf" *read/write requests: +(\d+) +\({_N} per sec\.\)",
        "ignored": rf" *ignored errors: +(\d+) +\({_N} per sec\.\)",
        "deadlocks": rf" *deadlocks: +(\d+) +\({_N} per sec\.\)",
        "reconnects": rf" *reconnects: +(\d+) +\({_N} per sec\.\)",
        "reads_per_s": rf" *reads/s: +{_N}",
        "writes_per_s": rf" *writes/s: +{_N}",
        "memory": rf" *(?:Total operations|Operations performed): +(\d+) +\( *{_N} (?:per second|ops/sec)\)",
        "memory_mib": rf" *{_N} (?:MiB|MB) transferred \({_N} (?:MiB|MB)/sec\)",
        "io": r" *Operations performed: +(\d+) Reads?, (\d+) Writes?, (\d+) Other = (\d+) Total",
        "fair": rf" *execution time \(avg/stddev\): +{_N}/{_N}",
    }.items()
}
_PERCENTILE = re.compile(rf" *(?:approx\. +(\d+)(?:th)? percentile|(\d+)(?:th|st|nd|rd) percentile): +{_N}(?:ms)?")
_SAYS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "threads": r"Number of threads: (\d+)",
        "rate": r"Target transaction rate: (\d+)/sec",
        "duration": r".*sysbench\s.*--(?:max-)?time[= ](\d+)\s.*\brun$",
        "prime": r"(?:Prime numbers limit|Maximum prime number checked in CPU test): (\d+)",
        "block-size": r" *(?:Block size|block size:|Memory block size:) ?(\S+)",
        "mode": r"Doing (.+?) test$",
        "operation": r" *(?:operation|Memory operations type): (\w+)",
    }.items()
}
_QUERIES = {name: re.compile(rf" +{name}: +(\d+)$") for name in ("read", "write")}
_TESTS: Mapping[str, re.Pattern[str]] = {
    "cpu": re.compile(r"(?:CPU speed:|Prime numbers limit|Maximum prime number|Doing CPU performance)"),
    "fileio": re.compile(r"(?:File operations:|Extra file open flags|\d+ files, |Operations performed: .*Read)"),
    "memory": re.compile(r"(?:Running memory speed test|Doing memory operations speed|.* transferred \()"),
    "threads": re.compile(r"Doing thread subsystem performance test"),
    "mutex": re.compile(r"Doing mutex performance test"),
    "oltp": re.compile(r"(?:SQL statistics:|OLTP test statistics:|Doing OLTP test|.*\btps: )"),
}


class Sysbench:
    """Reports of sysbench."""

    title: ClassVar[str] = "sysbench 0.4.12 to 1.1"
    says: ClassVar[tuple[str, ...]] = (
        "threads",
        "version",
        "test",
        "rate",
        "duration",
        "prime",
        "block-size",
        "mode",
        "operation",
        "queries",
    )

    def recognises(self, text: str) -> bool:
        """A banner, or the options that sysbench repeats, or its statistics."""
        begun = text.startswith("sysbench") or "\nsysbench" in text or "Threads fairness:" in text
        return begun and any(rank_of(line, _STAGES[1:]) is not None for line in text.split("\n"))

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:
        """Each report of the file; calls of `prepare` and `cleanup` are none."""
        # A last line without its end was cut, but the last of a report has no figure.
        *lines, rest = in_blocks(text.replace("\r\n", "\n").replace("\r", "\n"), _INTERVAL_LINES)
        counts = [rest] if _LINES["fair"].fullmatch(rest.rstrip()) else complaints_in([rest])
        parts = list(cut([*lines, *counts], _STAGES))
        runs = [part for part in parts if max(part.ranks, default=0) >= _HELD_RANK]
        if not runs:
            complaints = complaints_in([line for part in parts for line in part.lines])
            why = f"sysbench: {complaints[0]}" if complaints else "it has no report of sysbench (of `run`)"
            yield Report(None, why, text=text)
        for part in runs:
            intervals = [line for line in part.lines if _INTERVAL.match(line)]
            others = [line for line in part.lines if not _INTERVAL.match(line)]
            says = _said([*others, *(block.split("\n", 1)[0] for block in intervals[:1])])
            try:
                target = float(says["rate"]) if "rate" in says else None
                figures, distortions = _figures(part, others, intervals, max_error_share, target)
            except RunFailed as error:
                yield Report(None, str(error), says, part.first, part.text)
            else:
                columns = _columns(intervals)
                yield Report(figures.measurement(), None, says, part.first, part.text, distortions, columns)


def _said(lines: Sequence[str]) -> dict[str, str]:
    """In the order of lines, from which a guessed mapping takes the first level that tells reports apart."""
    says: dict[str, str] = {}
    states = any_of((_BANNER, *_SAYS.values(), *_TESTS.values())).match
    for line in lines:
        bare = line.rstrip()
        if not states(bare):
            continue
        for name, words in stated([bare], {"version": _BANNER, **_SAYS}).items():
            says.setdefault(name, words)
        for name, pattern in _TESTS.items():
            if pattern.match(bare):
                says.setdefault("test", name)
    if queries := _queries(lines):
        says["queries"] = queries
    return says


def _queries(lines: Sequence[str]) -> str | None:
    """Which queries a test of a database did: reports do not name their script."""
    counts = stated((line.rstrip() for line in lines), _QUERIES)
    done = [name for name, count in counts.items() if int(count)]
    return " and ".join(sorted(done)) or None


def _figures(
    part: Part, lines: list[str], intervals: list[str], max_error_share: float, target: float | None
) -> tuple[Figures, tuple[str, ...]]:
    """Figures of a report: `lines` are those that are no `intervals`, which are blocks of lines."""
    if complaints := complaints_in(lines):
        raise RunFailed(f"sysbench: {complaints[0]}")
    found, percentiles = _numbers(lines)
    if missing := [name for name in ("seconds", "events", "avg", "fair") if name not in found]:
        named = {
            "seconds": "total time",
            "events": "total number of events",
            "avg": "avg",
            "fair": "Threads fairness",
        }
        lacking = ", ".join(repr(named[name]) for name in missing)
        raise RunFailed(f"sysbench's report is cut short: from line {part.first} it lacks {lacking}")
    events, seconds = int(found["events"][0]), found["seconds"][0]
    if events == 0 or seconds <= 0:
        raise RunFailed(f"no event in {seconds:g} s")
    errors = int(found.get("ignored", found.get("deadlocks", (0.0,)))[0])
    if errors > max_error_share * events:
        raise RunFailed(f"{errors} errors in {events} transactions")
    counted = found.get("transactions")
    operations, rate, unit = events, events / seconds, "transactions" if counted else "events"
    if memory := found.get("memory"):
        operations, rate, unit = int(memory[0]), memory[1], "operations"
    elif "reads_per_s" in found:
        rate, unit = found["reads_per_s"][0] + found["writes_per_s"][0], "requests"
    elif counted and int(counted[0]) != events:
        unit = "events"
    histogram = histogram_in(lines)
    arrivals = target is not None or any(_QUEUE in block for block in intervals)  # latencies with time in the queue
    queries = found.get("queries", found.get("rw_requests"))
    figures = Figures(
        throughput=rate,
        latency=_times(found, percentiles, histogram, events, blind=not arrivals),
        unit=unit,
        operations=operations,
        duration_s=seconds,
        queries_per_s=None if queries is None else queries[0] / seconds,
        errors=errors,
        reconnects=int(found.get("reconnects", (0.0,))[0]),
        histogram=[(bucket.value_ms, bucket.count) for bucket in histogram],
        details=_details(found) | ({"target_per_s": target, "delivered_share": rate / target} if target else {}),
    )
    return figures, ("events-for-transactions",) if counted and counted[0] == 0 else ()


def _numbers(lines: list[str]) -> tuple[dict[str, tuple[float, ...]], dict[int, float]]:
    found: dict[str, tuple[float, ...]] = {}
    percentiles: dict[int, float] = {}
    has_figures = any_of((_PERCENTILE, *_LINES.values())).match
    for line in lines:
        if not has_figures(line):
            continue
        bare = line.rstrip()
        if match := _PERCENTILE.fullmatch(bare):
            percentiles[int(match.group(1) or match.group(2))] = float(match.group(3))
            continue
        for name, pattern in _LINES.items():
            if match := pattern.fullmatch(bare):
                found[name] = tuple(float(each) for each in match.groups())
                break
    return found, percentiles


def _times(
    found: Mapping[str, tuple[float, ...]],
    percentiles: Mapping[int, float],
    histogram: tuple[Bucket, ...],
    events: int,
    *,
    blind: bool,
) -> Times:
    """Latencies; the mean comes from the sum, which has more digits. Raises `RunFailed` if the two disagree.

    A latency printed as 0.00 is below the two digits, so it is unknown.
    """
    printed = found["avg"][0]
    total = found["sum"][0] if "sum" in found else found["taken_s"][0] * 1e3 if "taken_s" in found else None
    mean = printed if total is None else total / events
    if abs(mean - printed) > 0.0051 + 0.01 * printed:
        raise RunFailed(f"sysbench's report contradicts itself: mean {printed:g} ms, but {mean:g} ms by its sum")

    def percentile(number: int) -> float | None:
        printed = percentiles.get(number)
        return (percentile_ms(histogram, number) if histogram else None) if printed is None else printed or None

    return Times(
        mean=mean,
        least=found.get("min", (None,))[0] or None,
        most=found.get("max", (None,))[0],
        p50=percentile(50),
        p95=percentile(95),
        p99=percentile(99),
        resolution=RESOLUTION,
        blind=blind,
    )


def _columns(blocks: Sequence[str]) -> Columns | None:
    """Figures of the interval lines that show some."""
    rows = [row for block in blocks for row in _rows(block)]
    if not rows:
        return None
    ends, rates, queries, percents, latencies, errors, reconnects = zip(*rows, strict=True)
    throughputs = tuple(map(float, rates))
    timed = zip(percents, throughputs, latencies, strict=True)
    p95 = [float(each) if percent == "95" and rate > 0 else None for percent, rate, each in timed]
    return Columns(
        {
            "end_s": tuple(map(float, ends)),
            "throughput_per_s": throughputs,
            "latency_p95_ms": p95,
            "errors_per_s": [float(each) if each else None for each in errors],
            "reconnects_per_s": [float(each) if each else None for each in reconnects],
            "queries_per_s": [float(each) if each else None for each in queries],
        }
    )


def _rows(block: str) -> list[tuple[str, ...]]:
    """Figures of a block's lines in order; those of a log are of one form."""
    for form in _INTERVALS:
        if form.match(block) and len(rows := form.findall(block)) == block.count("\n") + 1:
            return rows
    lines = block.split("\n")
    return [row for line in lines for form in _INTERVALS for row in form.findall(line)]


def _details(found: Mapping[str, tuple[float, ...]]) -> dict[str, float]:
    details = {}
    if "memory_mib" in found:
        details["mib_per_s"] = found["memory_mib"][1]
    if "transactions" in found:
        details["transactions"] = found["transactions"][0]
    return details
