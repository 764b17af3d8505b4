"""memtier_benchmark 1.2 to 2: its table for people, and its JSON (`--json-out-file`).

With `-x`, it prints the best, the worst and the average run: the average is read, and `runs` says of how many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.cutting import Part, Stage, cut, report_of, stated
from tare.imports.parsers.figures import NUMBER, Figures, Kind, Times, number_in
from tare.record.measurement import Window

_STAGES = (
    Stage(re.compile(r"\[RUN #\d+"), once=False),
    Stage(re.compile(r"\d+ +(?:Threads|Connections per thread|Requests per|Seconds)"), once=False),
    Stage(re.compile(r"(?:ALL STATS|(?:BEST|WORST) RUN RESULTS|AGGREGATED AVERAGE RESULTS)"), once=False),
    Stage(re.compile(r"Request Latency Distribution")),
)
_AGGREGATED = re.compile(r"AGGREGATED AVERAGE RESULTS \((\d+) runs\)")
_SAYS: Mapping[str, re.Pattern[str]] = {
    "threads": re.compile(r"(\d+) +Threads"),
    "connections": re.compile(r"(\d+) +Connections per thread"),
    "requests": re.compile(r"(\d+) +Requests per (?:thread|client)"),
    "duration": re.compile(r"(\d+) +Seconds"),
}
_INFORMATION: Mapping[str, str] = {
    "threads": "Threads",
    "connections": "Connections per thread",
    "requests": "Requests per client",
    "duration": "Seconds",
}
_FAILED = re.compile(r".*(?:handle error response|connection error|connection dropped|Connection refused)")
_RUNNING = re.compile(
    rf"\[RUN #(\d+) \d+%, +(\d+) secs\] +([1-9]\d*) threads.*?: +\d+ ops, +{NUMBER} \(avg: +\d+\) ops/sec"
)
_TITLES: Mapping[str, str] = {
    "ops/sec": "rate",
    "avg. latency": "mean",
    "latency": "mean",
    "p50 latency": "p50",
    "p95 latency": "p95",
    "p99 latency": "p99",
}
_TOTALS = "totals"


class Memtier:
    """Reports of memtier_benchmark."""

    title: ClassVar[str] = "memtier_benchmark 1.2 to 2 (text, JSON)"
    says: ClassVar[tuple[str, ...]] = (*_SAYS, "runs")

    def recognises(self, text: str) -> bool:
        """The headings of its tables, which its JSON has as keys, with lines that only it has."""
        headed = "ALL STATS" in text or "AGGREGATED AVERAGE RESULTS" in text
        return (headed and ("Ops/sec" in text or "Connections per thread" in text)) or "[RUN #1" in text[:2000]

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:
        """Each report of the file."""
        if text.lstrip()[:1] == "{":
            yield _of_json(text, max_error_share)
            return
        lines = text.split("\n")
        parts = [part for part in cut(lines, _STAGES) if part.ranks]
        for part in parts:
            says = stated(part.lines, _SAYS)
            yield report_of(part, says, partial(_figures, part, says), ("errors-uncounted",))
        if not parts:
            failed = next((line for line in lines if _FAILED.match(line)), "it has no report of memtier_benchmark")
            yield Report(None, failed.strip()[:200], text=text)


def _figures(part: Part, says: dict[str, str]) -> Figures:
    if failed := next((line for line in part.lines if _FAILED.match(line)), None):
        raise RunFailed(f"memtier_benchmark: {failed.strip()[:200]}")
    begin = next((n for n, line in enumerate(part.lines) if line.startswith("ALL STATS")), None)
    if begin is None:
        found = [(n, match) for n, line in enumerate(part.lines) if (match := _AGGREGATED.match(line))]
        if not found:
            raise RunFailed(f"memtier_benchmark's report is cut short: from line {part.first} it has no table")
        begin, match = found[0]
        says["runs"] = match.group(1)
    rows = _table(part.lines[begin + 1 :])
    totals = rows.pop(_TOTALS, {})
    rate = totals.get("rate")
    if rate is None:
        raise RunFailed(f"memtier_benchmark's report is cut short: from line {part.first} it has no line of totals")
    if rate <= 0:
        raise RunFailed("no operation a second")
    kinds = {name: Kind(_times(row)) for name, row in rows.items() if row.get("rate")}
    windows = () if "runs" in says else _windows(part.lines)
    return Figures(rate, _times(totals), unit="operations", errors=None, kinds=kinds, windows=windows)


def _times(row: Mapping[str, float | None]) -> Times:
    mean, p50, p95, p99 = (row.get(name) for name in ("mean", "p50", "p95", "p99"))
    return Times(mean, p50=p50, p95=p95, p99=p99, blind=True)


def _table(lines: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Rows of the table below a title: kind of operation → figures by the headings that are known."""
    rows: dict[str, dict[str, float | None]] = {}
    heading: list[str] = []
    for line in lines:
        if line.startswith("Type "):
            heading = [each.lower() for each in re.split(r" {2,}", line.strip())]
        elif not line.strip() and rows:
            break
        elif heading and not line.startswith(("=", "-")):
            cells = line.split()
            if len(cells) != len(heading):
                continue
            named = dict(zip(heading[1:], cells[1:], strict=True))
            rows[_kind(cells[0])] = {
                _TITLES[title]: float(cell) if re.fullmatch(NUMBER, cell) else None
                for title, cell in named.items()
                if title in _TITLES
            }
    return rows


def _kind(title: str) -> str:
    """`Sets` → `set`."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    return name if name == _TOTALS else name.removesuffix("s")


def _windows(lines: Sequence[str]) -> Iterator[Window]:
    """Yield the states of a running test: one a second, of which a second may be told twice."""
    last = 0
    for state in (each for line in lines for each in line.split("\r")):
        match = _RUNNING.match(state)
        if match and int(match.group(2)) > last:
            last = int(match.group(2))
            yield Window(float(last), float(match.group(4)))


def _of_json(text: str, max_error_share: float) -> Report:
    try:
        tree = json.loads(text)
    except ValueError as error:
        return Report(None, f"its JSON is cut short: {error}", text=text)
    run = tree.get("run information") if isinstance(tree, dict) else None
    run = run if isinstance(run, Mapping) else {}
    says = {name: str(run[key]) for name, key in _INFORMATION.items() if isinstance(run.get(key), int)}
    name = next((key for key in tree if key == "ALL STATS" or _AGGREGATED.match(key)), None)
    stats = tree.get(name) if name is not None else None
    if not isinstance(stats, Mapping) or name is None:
        return Report(None, "it has no statistics of memtier_benchmark", says, text=text)
    if match := _AGGREGATED.match(name):
        says["runs"] = match.group(1)
    try:
        figures = _json_figures(stats, max_error_share, averaged="runs" in says)
    except RunFailed as error:
        return Report(None, str(error), says, text=text)
    return Report(figures.measurement(), None, says, text=text)


def _json_figures(stats: Mapping[str, Any], max_error_share: float, *, averaged: bool) -> Figures:
    totals = stats.get("Totals")
    rate = number_in(totals, "Ops/sec") if isinstance(totals, Mapping) else None
    if rate is None or not isinstance(totals, Mapping):
        raise RunFailed("it lacks the totals")
    if rate <= 0:
        raise RunFailed("no operation a second")
    errors, count = number_in(totals, "Connection Errors"), number_in(totals, "Count")
    if errors and count is not None and errors > max_error_share * count:
        raise RunFailed(f"{errors:g} connection errors in {count:g} operations")
    kinds = {
        _kind(name): tree
        for name, tree in stats.items()
        if name != "Totals" and isinstance(tree, Mapping) and (number_in(tree, "Ops/sec") or 0) > 0
    }
    told = stats.get("Runtime")
    runtime = told if isinstance(told, Mapping) else {}
    duration, start = number_in(runtime, "Total duration"), number_in(runtime, "Start time")
    seconds = duration / 1e3 if duration and runtime.get("Time unit") == "MILLISECONDS" else None
    return Figures(
        throughput=rate,
        latency=_json_times(totals, list(kinds.values()), averaged=averaged),
        unit="operations",
        operations=None if count is None else int(count),
        duration_s=None if averaged else seconds,
        errors=None if errors is None else int(errors),
        windows=_json_windows(totals, seconds),
        kinds={
            name: Kind(_json_times(tree, [tree], averaged=averaged), _whole(number_in(tree, "Count")))
            for name, tree in kinds.items()
        },
        started_at=start / 1e3 if start and seconds else None,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _json_times(tree: Mapping[str, Any], kinds: Sequence[Mapping[str, Any]], *, averaged: bool) -> Times:
    """Latencies: an average of 0, which totals have, is not known; nor are the percentiles of an average run."""
    told = tree.get("Percentile Latencies")
    percentiles = told if isinstance(told, Mapping) and not averaged else {}
    mean = number_in(tree, "Average Latency") or number_in(tree, "Latency") or None
    sums = [(number_in(each, "Accumulated Latency"), number_in(each, "Count")) for each in kinds]
    if mean is None and sums and all(total and count for total, count in sums):
        mean = sum(total or 0.0 for total, _ in sums) / sum(count or 0.0 for _, count in sums)
    p50, p95, p99 = (number_in(percentiles, f"p{each}.00") or None for each in (50, 95, 99))
    least, most = (number_in(tree, f"{each} Latency") or None for each in ("Min", "Max"))
    return Times(mean, least, most, p50, p95, p99, blind=True)


def _json_windows(totals: Mapping[str, Any], seconds: float | None) -> Iterator[Window]:
    """Yield each whole second."""
    told = totals.get("Time-Serie")
    series = told if isinstance(told, Mapping) and seconds is not None else {}
    for name, tree in series.items():
        if seconds is not None and name.isdecimal() and int(name) + 1 <= seconds and isinstance(tree, Mapping):
            yield Window(int(name) + 1.0, number_in(tree, "Count"), number_in(tree, "p95.00"))
