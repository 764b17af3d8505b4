"""Parsers for the JSON+ report of fio 3.33 and its logs of windows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.errors import RunFailed

DIRECTIONS: Mapping[str, int] = {"read": 0, "write": 1}
"""Kind of request → its number in a log (fio(1), log file formats)."""
_SIGNAL = re.compile(r"fio: terminating on signal (\d+)")
_ENTRY = re.compile(r"(\d+), (\d+), (\d+), \d+, \d+(?:, \d+)?")
_PRINTED = re.compile(r"^  \"timestamp_ms\" : (\d+),$", re.MULTILINE)
_NS = 1e-6


@dataclass(frozen=True)
class Timed:
    """Requests of one kind in one job, in milliseconds; mean and extremes are `None` without requests.

    `count`: requests that fio made; `histogram`: requests that it timed.
    """

    count: int
    mean_ms: float | None
    min_ms: float | None
    max_ms: float | None
    histogram: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Job:
    """Results of one job. `error`: an errno, 0 for none. `moved`: kind of request → bytes."""

    error: int
    runtime_s: float
    kinds: Mapping[str, Timed]
    moved: Mapping[str, int]
    incomplete: int
    """Number of requests that moved less than requested, or were dropped."""
    usr_cpu_percent: float
    sys_cpu_percent: float


@dataclass(frozen=True)
class Entry:
    """Requests per second of one kind over the window that ends at `end_s`."""

    end_s: float
    rate_per_s: float
    direction: int


def ended_by(text: str) -> int | None:
    """Signal that ended fio early, as fio reports it; `None` if there was none."""
    match = _SIGNAL.search(text)
    return None if match is None else int(match.group(1))


def jobs_in(text: str) -> tuple[Job, ...] | None:
    """Parse all jobs of a report, which notes may precede; `None` if the report is incomplete."""
    start = next((n for n, line in enumerate(text.splitlines()) if line == "{"), None)
    if start is None:
        return None
    try:
        tree = json.loads("\n".join(text.splitlines()[start:]))
        return tuple(_job(job) for job in tree["jobs"])
    except (ValueError, KeyError, TypeError):
        return None


def printed_at(text: str) -> float | None:
    """Seconds since the epoch when fio printed its report, right after its jobs; `None` if it does not say."""
    match = _PRINTED.search(text)
    return None if match is None else int(match.group(1)) / 1000


def entries_in(log: str) -> tuple[Entry, ...]:
    """Parse the log of one job's windows: time in ms, rate, direction, block size, offset. Raises `RunFailed`."""
    entries = []
    for line in log.splitlines(keepends=True):
        match = _ENTRY.fullmatch(line.rstrip("\n")) if line.endswith("\n") else None
        if match is None:
            raise RunFailed(f"fio's log of windows is cut short or no log: {line.strip()[:80]!r}")
        time_ms, rate, direction = (int(figure) for figure in match.groups())
        entries.append(Entry(time_ms / 1000, float(rate), direction))
    return tuple(entries)


def _job(tree: Mapping[str, Any]) -> Job:
    kinds = {kind: _timed(tree[kind]["lat_ns"], tree[kind]["total_ios"]) for kind in DIRECTIONS}
    return Job(
        error=int(tree["error"]),
        runtime_s=tree["job_runtime"] / 1000,
        kinds={**kinds, "fsync": _timed(tree["sync"]["lat_ns"], tree["sync"]["total_ios"])},
        moved={kind: int(tree[kind]["io_bytes"]) for kind in DIRECTIONS},
        incomplete=sum(int(tree[kind][what]) for kind in DIRECTIONS for what in ("short_ios", "drop_ios")),
        usr_cpu_percent=float(tree["usr_cpu"]),
        sys_cpu_percent=float(tree["sys_cpu"]),
    )


def _timed(tree: Mapping[str, Any], count: int) -> Timed:
    if count == 0 or tree["N"] == 0:
        return Timed(count, None, None, None, ())
    histogram = tuple(sorted((int(value) * _NS, int(times)) for value, times in tree["bins"].items() if times))
    return Timed(count, tree["mean"] * _NS, tree["min"] * _NS, tree["max"] * _NS, histogram)
