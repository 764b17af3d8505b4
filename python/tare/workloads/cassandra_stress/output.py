"""Parser for the output of cassandra-stress 3.11, line by line; it judges nothing.

Formats: `StressMetrics` and `TimingInterval` of that release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, zip_longest

_LINE = re.compile(r"(total|[A-Za-z]\w*), *([0-9]{1,18})((?:, *(?:-?[0-9]+(?:\.[0-9]+)?|NaN|-?Infinity)){17})\s*")
"""A figure wider than its column has no blank before it, such as `stderr` if its mean is near 0."""
_BEGUN = re.compile(r"(?:(?:total|[A-Z_]+), *[0-9]|[A-Za-z]\w*, *[0-9]+(?:, *[-0-9.]+){3})")
"""Kinds of a profile (`user profile=`) have names of their own, so a line of one is known by its figures."""
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,18})(?:\.[0-9]+)?|NaN"
"""Number in an English locale; in another locale, 24,8 would be read as 248."""
_SUMMARY = re.compile(rf"([A-Z][A-Za-z0-9. ]{{0,40}}?) +: +({_NUMBER})(?: [a-zA-Z/]+)?(?: +\[(.*)\])?")
_KIND = re.compile(rf"([A-Za-z]\w*): ({_NUMBER})")
_TIME = re.compile(r"Total operation time +: (\d+):(\d\d):(\d\d)")
_RATE = re.compile(r"\s+OpsPer Sec: (-?\d+)")
_EXCEPTION = re.compile(r"(?:Caused by: )?(?:[a-z_][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error)\b.*")
_USAGE = "Usage:      cassandra-stress "
"""Text after a line that names an option that cassandra-stress cannot read."""
_FAILED = re.compile(r"(?:java\.io\.IOException: )?(Operation x\d+ on key\(s\) .*)")
_COLUMNS = (
    "op_rate", "partition_rate", "row_rate", "mean_ms", "median_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms",
    "time_s", "stderr", "errors",
)  # fmt: skip
_FIGURES: Mapping[str, str] = {
    "Op rate": "op_rate",
    "Partition rate": "partition_rate",
    "Row rate": "row_rate",
    "Latency mean": "mean_ms",
    "Latency median": "median_ms",
    "Latency 95th percentile": "p95_ms",
    "Latency 99th percentile": "p99_ms",
    "Latency 99.9th percentile": "p999_ms",
    "Latency max": "max_ms",
    "Total partitions": "partitions",
    "Total errors": "errors",
    "Total GC count": "gc_count",
}

TOTAL = "total"
EARLY_S = 1.0
"""Largest time in seconds by which its clock, which begins at a whole second, precedes the first operation."""


@dataclass(frozen=True)
class Interval:
    """A line of the log. `kind`: operation or `total`. `operations`: since the start. `figures`: by column."""

    kind: str
    operations: int
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Printed:
    """Parsed output. `results`: figure → kind (or `total`) → value.

    `rate_per_s`: operations per second requested by `fixed=` or `throttle=`, which 3.11 does not distinguish;
    `None` without a limit, or if the output does not name one (`reports_limit`). `ended`: the report has its last
    line. `complaints`: ignored options, a second report, unreadable figures, FAILURE. `exceptions`: first lines of
    Java's stack traces. `failed`: why the first failed operation failed. `last`: the last line, whatever it is.
    """

    intervals: tuple[Interval, ...]
    results: Mapping[str, Mapping[str, float]]
    rate_per_s: int | None
    reports_limit: bool
    seconds: int | None
    ended: bool
    complaints: tuple[str, ...]
    exceptions: tuple[str, ...]
    failed: str | None = None
    last: str | None = None


def read_output(*texts: str) -> Printed:
    """Parse all output. A last line without its end was cut, and is ignored."""
    lines = [line for text in texts for line in text.replace("\r", "").split("\n")[:-1]]
    rates = [int(match.group(1)) for line in lines if (match := _RATE.fullmatch(line))]
    times = [match for line in lines if (match := _TIME.match(line))]
    return Printed(
        intervals=tuple(_interval(match) for line in lines if (match := _LINE.fullmatch(line))),
        results=_results(lines),
        rate_per_s=next((rate for rate in rates if rate > 0), None),
        reports_limit=bool(rates),
        seconds=next((3600 * int(h) + 60 * int(m) + int(s) for h, m, s in (t.groups() for t in times)), None),
        ended="END" in lines,
        complaints=_complaints(lines),
        exceptions=tuple(dict.fromkeys(line for line in lines if _EXCEPTION.fullmatch(line))),
        failed=next((match.group(1) for line in lines if (match := _FAILED.match(line))), None),
        last=next((line.strip() for line in reversed(lines) if line.strip()), None),
    )


def _interval(match: re.Match[str]) -> Interval:
    values = [float(value) for value in match.group(3).split(",")[1:]]
    return Interval(match.group(1), int(match.group(2)), dict(zip(_COLUMNS, values, strict=False)))


def _results(lines: list[str]) -> dict[str, dict[str, float]]:
    begin = lines.index("Results:") if "Results:" in lines else len(lines)
    results: dict[str, dict[str, float]] = {}
    for line in lines[begin:]:
        match = _SUMMARY.fullmatch(line.rstrip())
        if match and match.group(1) in _FIGURES:
            kinds = {kind: _number(value) for kind, value in _KIND.findall(match.group(3) or "")}
            results[_FIGURES[match.group(1)]] = {TOTAL: _number(match.group(2)), **kinds}
    return results


def _complaints(lines: list[str]) -> tuple[str, ...]:
    ignored = [
        f"{line} {after}"
        for line, after in zip_longest(lines, lines[1:], fillvalue="")
        if line.startswith("Error processing command line")
    ]
    more = ["its output holds more than one report"] if lines.count("Results:") > 1 else []
    refused = [line for line, after in pairwise(lines) if after.startswith(_USAGE) and line.strip()]
    gave_up = [line for line in lines if line in {"FAILURE", "Invalid arguments"}]
    return (*refused, *ignored, *more, *map(_unreadable, filter(_cannot_be_read, lines)), *gave_up)


def _cannot_be_read(line: str) -> bool:
    if _BEGUN.match(line):
        return not _LINE.fullmatch(line)
    return line.partition(":")[0].strip() in _FIGURES and not _SUMMARY.fullmatch(line.rstrip())


def _unreadable(line: str) -> str:
    return f"cannot read {line.rstrip()!r}: is it truncated, or in a locale other than English?"


def _number(text: str) -> float:
    return float(text.replace(",", ""))
