"""pgbench's logs: a line for each transaction (`--log`), or for each interval (`--aggregate-interval`)."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.exact import exact_times, histogram_of, whole_seconds
from tare.imports.parsers.figures import Figures, Times
from tare.record.measurement import Window

_TRANSACTION = re.compile(
    r"(\d+) (\d+) (\d+|skipped|failed|serialization|deadlock) (\d+) (\d{9,10}) (\d{1,6})(?: \d+){0,2}"
)
_INTERVAL = re.compile(r"(\d{9,10}) (\d+) (\d+(?:\.\d+)?) \d+(?:\.\d+)? (\d+) (\d+)((?: \S+)*)")
_WITH_LAG = 4
"""Fields of an interval that tell of the lag; since PostgreSQL 15 they are 0 without `--rate`."""
_MOST_INTERVALS = 1_000_000
_PID_DIGITS = 4
_LEAST_INTERVALS = 3
"""The first and the last are cut short by the run's start and end, so that a rate needs one between them."""


@dataclass(frozen=True)
class _Transaction:
    """Times in s since 1970; `latency_s` is `None` for one that failed or was skipped."""

    client: int
    number: int
    end_s: float
    latency_s: float | None


def is_log(text: str) -> bool:
    """Whether the text begins as a log of pgbench does."""
    first = text[:200].split("\n", 1)[0]
    return bool(_TRANSACTION.fullmatch(first) or _INTERVAL.fullmatch(first))


def is_one_thread(name: str, is_there: Callable[[str], bool]) -> bool:
    """Whether a log's name is of one thread of several: beside `PREFIX.PID` there is `PREFIX.PID.1`, and so on."""
    whole, _, thread = name.rpartition(".")
    return is_there(f"{name}.1") or (thread.isdecimal() and len(thread) < _PID_DIGITS and is_there(whole))


def log_report(text: str, max_error_share: float) -> Report:
    """The one run of a log."""
    lines = text.split("\n")[:-1]  # what follows the last line's end was cut
    kind = "transactions" if lines and _TRANSACTION.fullmatch(lines[0]) else "intervals"
    try:
        if kind == "transactions":
            figures = _of_transactions(list(_transactions(lines)), max_error_share)
        else:
            figures = _of_intervals(lines)
    except RunFailed as error:
        return Report(None, str(error), {"log": kind}, text=text)
    return Report(figures.measurement(), None, {"log": kind}, text=text)


def _transactions(lines: Sequence[str]) -> Iterator[_Transaction]:
    for number, line in enumerate(lines, start=1):
        match = _TRANSACTION.fullmatch(line)
        if match is None:
            raise RunFailed(f"line {number} is no line of pgbench's log")
        client, transaction, took, _, seconds, micro = match.groups()
        latency = int(took) / 1e6 if took.isdecimal() else None
        yield _Transaction(int(client), int(transaction), int(seconds) + int(micro) / 1e6, latency)


def _of_transactions(log: Sequence[_Transaction], max_error_share: float) -> Figures:
    """Figures of a log of all clients. A sample of the transactions (`--sampling-rate`) gives no rate."""
    first = min(each.client for each in log)
    if first > 0:
        raise RunFailed(
            f"the log begins with client {first}: it is of one thread of several (join the logs of all: "
            "cat pgbench_log.PID pgbench_log.PID.*)"
        )
    good = [latency for _, latency in _ends(log)]
    errors = len(log) - len(good)
    if not good:
        raise RunFailed("no transaction succeeded")
    if errors > max_error_share * len(log):
        raise RunFailed(f"{errors} of {len(log)} transactions failed or were skipped")
    logged = Counter(each.client for each in log)
    highest = {each.client: 0 for each in log}
    for each in log:
        highest[each.client] = max(highest[each.client], each.number)
    sampled = any(highest[client] > count for client, count in logged.items())
    start = min(each.end_s - (each.latency_s or 0.0) for each in log)
    duration = max(each.end_s for each in log) - start
    if duration <= 0:
        raise RunFailed("its transactions took no time")

    return Figures(
        throughput=None if sampled else len(good) / duration,
        latency=exact_times(good),
        unit="transactions",
        operations=None if sampled else len(good),
        duration_s=duration,
        errors=None if sampled else errors,
        histogram=histogram_of(good),
        windows=() if sampled else whole_seconds(_ends(log), start, duration),
        started_at=start,
    )


def _ends(log: Sequence[_Transaction]) -> Iterator[tuple[float, float]]:
    """Ends and latencies of those that succeeded."""
    return ((each.end_s, each.latency_s) for each in log if each.latency_s is not None)


def _of_intervals(lines: Sequence[str]) -> Figures:
    """Figures of the whole intervals, all but the first and the last. Logs of all threads may be joined."""
    rows = []
    for number, line in enumerate(lines, start=1):
        match = _INTERVAL.fullmatch(line)
        if match is None:
            raise RunFailed(f"line {number} is no line of pgbench's aggregated log")
        rows.append(match.groups())
    starts = sorted({int(row[0]) for row in rows})
    if len(starts) < _LEAST_INTERVALS:
        raise RunFailed(f"{len(starts)} intervals give no rate: the first and the last are not whole")
    width = min(later - earlier for earlier, later in itertools.pairwise(starts))
    if (starts[-1] - starts[0]) / width > _MOST_INTERVALS:
        raise RunFailed("its intervals are far apart: are the logs of several runs joined?")
    whole = [row for row in rows if starts[0] < int(row[0]) < starts[-1]]
    total, span_s = sum(int(row[1]) for row in whole), starts[-1] - starts[0] - width
    if total == 0:
        raise RunFailed("no transaction in its whole intervals")
    busy = [row for row in whole if int(row[1])]
    scheduled = any(_is_positive(row[5].split()[:_WITH_LAG]) for row in whole)
    counts: Counter[int] = Counter()
    for row in whole:
        counts[int(row[0])] += int(row[1])
    return Figures(
        throughput=total / span_s,
        latency=Times(
            mean=math.fsum(float(row[2]) for row in busy) / total / 1e3,
            least=min(int(row[3]) for row in busy) / 1e3,
            most=max(int(row[4]) for row in busy) / 1e3,
            blind=not scheduled,
        ),
        unit="transactions",
        operations=total,
        duration_s=float(span_s),
        errors=None,
        windows=[
            Window(float(at + width - starts[0]), counts[at] / width)
            for at in range(starts[0] + width, starts[-1], width)
        ],
    )


def _is_positive(lags: Sequence[str]) -> bool:
    """Whether there was a lag behind the schedule, which only `--rate` has."""
    return any(each.strip("0.") and each.replace(".", "", 1).isdecimal() for each in lags)
