"""What the headings of tables name: a metric with its unit, a platform, or a setting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_RATE = re.compile(
    r"(?i)\b(?:tps|qps|iops|rps|throughput|(?:req\w*|trans\w*|op\w*|quer\w*) ?(?:/|per) ?s(?:ec\w*)?)\b"
)
_OTHER_RATE = re.compile(
    r"(?i)\b(?:[kmg]i?b|bytes|bits?|bps|min|minute|std\w*|stdev|dev|err\w*|fail\w*|max)\b|\bm/s"
)
_LATENCY = re.compile(
    r"(?i)\b(?:lat|latency|response|rt|delay|duration|elapsed|time|runtime|took|wall|seconds|milliseconds)\b"
)
_STATISTIC: Mapping[str, re.Pattern[str]] = {
    "mean": re.compile(r"(?i)\b(?:avg|average|mean)\b"),
    "p50": re.compile(r"(?i)\b(?:p50|median|50th)\b"),
    "p95": re.compile(r"(?i)\b(?:p95|95th)\b"),
    "p99": re.compile(r"(?i)\b(?:p99|99th)\b"),
}
_OTHER_STATISTIC = re.compile(
    r"(?i)\b(?:min|max|std\w*|stdev|dev|sum|total|start|end|begin|p\d+|\d+th|cpu|user|sys|system|idle|think)\b"
)
_UNIT = re.compile(r"(?i)\b(ns|us|µs|usec|ms|msec|s|sec|secs|seconds|milliseconds|microseconds)\b")
_UNITS: Mapping[str, str] = {
    "ns": "ns", "us": "us", "µs": "us", "usec": "us", "microseconds": "us", "ms": "ms", "msec": "ms",
    "milliseconds": "ms", "s": "s", "sec": "s", "secs": "s", "seconds": "s",
}  # fmt: skip
_PERHAPS_RATE = re.compile(r"(?i)\b(?:ops|score|value|result)\b")
_SETTING = re.compile(
    r"(?i)\b(?:threads?|clients?|conn\w*|concurrency|users?|size|depth|scale|records?|rate|run|rep\w*|iter\w*|trial|round)\b"
)


@dataclass(frozen=True)
class Figure:
    """A column that is a metric. `column`: its heading. `doubt`: where, if nothing there says metric and unit."""

    metric: str
    column: str
    unit: str
    doubt: str = ""


def words_of(heading: str) -> str:
    """The words of a heading in small letters, with blanks between them."""
    return re.sub(r"[^a-z0-9/µ]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", heading).lower()).strip()


def figure_of(heading: str) -> Figure | None:
    """The metric that a heading names; a time without a unit is none."""
    words = words_of(heading)
    if _RATE.search(words) and not _OTHER_RATE.search(words):
        return Figure("throughput", heading, "/s")
    unit = _UNIT.search(words)
    if unit is None or not _LATENCY.search(words):
        return None
    return _latency(words, heading, _UNITS[unit.group(1)])


def perhaps_figure(heading: str) -> Figure | None:
    """The metric that a heading most likely means which does not say its unit: somebody must confirm it."""
    words = words_of(heading)
    if _LATENCY.search(words) and not _UNIT.search(words):
        return _latency(words, heading, "ms", f"the column {heading!r}")
    if _PERHAPS_RATE.search(words) and not _OTHER_RATE.search(words):
        return Figure("throughput", heading, "/s", f"the column {heading!r}")
    return None


def _latency(words: str, heading: str, unit: str, doubt: str = "") -> Figure | None:
    """The latency that words name; none for extremes, sums and other percentiles."""
    named = next((name for name, pattern in _STATISTIC.items() if pattern.search(words)), None)
    if named is None and _OTHER_STATISTIC.search(words):
        return None
    return Figure(f"latency_{named or 'mean'}", heading, unit, doubt)


def is_numeric(values: Sequence[str]) -> bool:
    """Whether all texts are numbers or empty, and one is a number."""
    return any(values) and all(NUMBER.fullmatch(value) or not value for value in values)


def says_what(heading: str, values: Sequence[str]) -> bool:
    """Whether a column says what a run was: a text, or a number that is a setting or counts repetitions."""
    if len(set(values)) < 2 or not all(values):
        return False
    numeric = all(NUMBER.fullmatch(value) for value in values)
    return not numeric or (
        _SETTING.search(words_of(heading)) is not None and all(value.isdecimal() for value in values)
    )
