"""Turn the output of YCSB into a measurement, or raise why it is none, as YCSB always exits with 0.

docs/reference/workloads/ycsb.md lists what counts as a failure; each case was tried on the real program.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tare.errors import RunFailed
from tare.workloads import Latency, Measurement, Operation, Window
from tare.workloads.merged import merge_histograms, merge_latencies, percentile
from tare.workloads.ycsb.completeness import (
    counted,
    is_series,
    must_be_one_report,
    must_count_as_many,
    must_have_every_section_whole,
)
from tare.workloads.ycsb.output import Printed, Section, Status

HDR_RESOLUTION = 1e-3
"""HdrHistogram with 3 significant digits: values up to 2048 µs exactly, above within 1 in 1024 (Recorder(3))."""

KINDS = ("READ", "UPDATE", "INSERT", "SCAN", "DELETE", "READ-MODIFY-WRITE")
_COMPOSITE = "READ-MODIFY-WRITE"
"""Kind whose read and update YCSB also counts under their own names."""
_INTENDED = "Intended-"
_HDR, _BUCKET, _RAW = "Hdr", "Bucket", "Raw"
"""Prefixes that `hdrhistogram+histogram` and `hdrhistogram+raw` put before a kind's name."""
_FAILED = re.compile(rf"(?:{_INTENDED})?(?:{_HDR}|{_BUCKET}|{_RAW})?({'|'.join(KINDS)})-(?!MODIFY)(.+)")
_VERIFIED = re.compile(rf"(?:{_HDR}|{_BUCKET}|{_RAW})?VERIFY")
"""Sections of `dataintegrity`, which compares what each read returned with the expected record."""
_DETAILS: Mapping[str, tuple[str, str]] = {
    "gc_count": ("TOTAL_GCs", "Count"),
    "gc_time_ms": ("TOTAL_GC_TIME", "Time(ms)"),
    "gc_time_percent": ("TOTAL_GC_TIME_%", "Time(%)"),
    "max_mem_used_mb": ("MAX_MEM_USED", "MBs"),
    "min_mem_used_mb": ("MIN_MEM_USED", "MBs"),
    "max_threads": ("MAX_THREADS", "Count"),
    "min_threads": ("MIN_THREADS", "Count"),
    "max_sys_load_avg": ("MAX_SYS_LOAD_AVG", "Load"),
    "min_sys_load_avg": ("MIN_SYS_LOAD_AVG", "Load"),
}
"""Name in a record → section and figure of YCSB's report on its JVM."""
_SUCCESS = ("OK", "BATCHED_OK")
"""Return codes of success (`Status.isOk`); the latter is for an insert that a binding keeps for its batch."""
_US = 1e-3
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Expected:
    """What the run should have done, as far as known; `None` is not checked.

    `operations`: exact number. `seconds`: least duration. `target_per_s`: requested arrivals per second.
    `max_error_share`: largest acceptable share of failed operations. `interval`: what YCSB timed; its output shows
    `both`, but not `intended`. `window_s`: time between status lines.
    """

    operations: int | None = None
    seconds: float | None = None
    target_per_s: float | None = None
    max_error_share: float = 0.0
    interval: Literal["op", "intended", "both"] | None = None
    window_s: float | None = None


def measurement(printed: Printed, asked: Expected) -> Measurement:
    """Make the measurement. Raises `RunFailed` with the gravest sign that the run is incomplete or wrong."""
    _must_not_have_given_up(printed)
    runtime_ms, rate = _overall(printed)
    must_be_one_report(printed)
    kinds = {kind: _Kind.of(printed, kind) for kind in KINDS if _has(printed, kind)}
    if not kinds:
        because = _because(printed) or ": the server did not answer"
        raise RunFailed(f"YCSB reports no operation{because}")
    operations = {_name(kind): each.operation(asked) for kind, each in kinds.items()}
    done = sum(each.done for each in _statements(operations).values())
    errors = sum(each.errors for each in operations.values())
    whole = _transactions(kinds, rate * runtime_ms / 1000)
    _must_be_free_of_errors(printed, kinds, errors, done, asked.max_error_share)
    _must_hold_what_was_written(printed, kinds)
    must_have_every_section_whole(printed)
    must_count_as_many(rate * runtime_ms / 1000, whole, kinds["INSERT"].failed if "INSERT" in kinds else 0)
    _must_be_timed_and_answered(kinds, asked)
    _must_be_as_many(printed, whole, runtime_ms / 1000, asked)
    seconds = runtime_ms / 1000
    histogram = merge_histograms(each.histogram for each in _statements(operations).values())
    return Measurement(
        operations=whole,
        unit="operations",
        duration_s=seconds,
        throughput_per_s=whole / seconds,
        queries_per_s=None,
        errors=errors,
        reconnects=None,
        latency=merge_latencies(_statements(operations).values(), histogram, HDR_RESOLUTION),
        histogram=histogram,
        windows=_windows(printed.statuses, asked),
        details=_details(printed, asked, whole / seconds),
        by_operation=operations,
        started_at=_started_at(printed.statuses),
    )


@dataclass(frozen=True)
class _Kind:
    """Sections of one kind of operation, timed from the actual send and from the intended send."""

    actual: Section | None
    intended: Section | None
    answers: Mapping[str, int]
    failed: int

    @classmethod
    def of(cls, printed: Printed, kind: str) -> _Kind:
        sections = {prefix: _section(printed, prefix, kind) for prefix in ("", _INTENDED)}
        answers: dict[str, int] = {}
        for name in (kind, f"{_HDR}{kind}", f"{_INTENDED}{kind}", f"{_INTENDED}{_HDR}{kind}", f"{_RAW}{kind}"):
            if name in printed.sections and not answers:
                answers = dict(printed.sections[name].answers)
        failed = sum(count for answer, count in answers.items() if answer not in _SUCCESS)
        timed = [_failures(printed, kind, prefix) for prefix in ("", _INTENDED)]
        return cls(sections[""], sections[_INTENDED], answers, max(failed, *timed))

    @property
    def best(self) -> Section:
        """Section timed from the intended send if there is one, else from the actual send."""
        section = self.intended or self.actual
        assert section is not None  # noqa: S101 - `_has` has seen to it
        return section

    @property
    def done(self) -> int:
        """Number of successful operations; by return codes if the section has no count, or an unreliable one."""
        count = counted(self.best)
        if count is None or (self.answers and is_series(self.best)):
            return sum(self.answers.get(name, 0) for name in _SUCCESS)
        return count

    def operation(self, asked: Expected) -> Operation:
        arrivals = asked.target_per_s is not None
        intended = self.intended is not None or asked.interval == "intended"
        best = _latency(self.best, intended=intended, arrivals=arrivals)
        both = self.intended is not None and self.actual is not None
        return Operation(
            operations=self.done,
            errors=self.failed,
            latency=best,
            service_time=_latency(self.actual, intended=False, arrivals=arrivals) if both and self.actual else None,
            histogram=_histogram(self.best),
            answers=dict(self.answers),
        )


def _section(printed: Printed, prefix: str, kind: str) -> Section | None:
    """Section of a kind; if there are two measurements, HdrHistogram's, which is finer."""
    for inner in ("", _HDR, _RAW, _BUCKET):
        for name in (f"{prefix}{inner}{kind}", f"{inner}{prefix}{kind}"):
            if (section := printed.sections.get(name)) and counted(section) is not None:
                return section
    return None


def _has(printed: Printed, kind: str) -> bool:
    return any(_section(printed, prefix, kind) for prefix in ("", _INTENDED))


def _failures(printed: Printed, kind: str, prefix: str) -> int:
    """Number of operations timed as failed, such as `[READ-FAILED]` or `[READ-NOT_FOUND]`."""
    total = 0
    for name, section in printed.sections.items():
        match = _FAILED.fullmatch(name)
        if not match or match.group(1) != kind or name.startswith(_INTENDED) != bool(prefix):
            continue
        if _BUCKET not in name and _RAW not in name:
            total += counted(section) or 0
    return total


def _latency(section: Section, *, intended: bool, arrivals: bool) -> Latency:
    """Latency in milliseconds; percentiles come from the histogram if YCSB printed one, else from YCSB.

    Without a target, the intended send is the actual one, so the loop is closed whatever `interval` says.
    """
    histogram = _histogram(section)
    figures = section.figures
    coarse = "LatencyVariance(us)" in figures
    return Latency(
        mean_ms=_ms(figures, "AverageLatency(us)", "Average"),
        min_ms=_ms(figures, "MinLatency(us)", "Min"),
        max_ms=_ms(figures, "MaxLatency(us)", "Max"),
        p50_ms=percentile(histogram, 50) if histogram else _ms(figures, "50thPercentileLatency(us)", "p50"),
        p95_ms=percentile(histogram, 95) if histogram else _ms(figures, "95thPercentileLatency(us)", "p95"),
        p99_ms=percentile(histogram, 99) if histogram else _ms(figures, "99thPercentileLatency(us)", "p99"),
        resolution=None if coarse or "Average" in figures else HDR_RESOLUTION,
        blind_to_stalls=not (intended and arrivals),
        timed_from="intended-send" if intended else "actual-send",
    )


def _ms(figures: Mapping[str, float], *names: str) -> float | None:
    value = next((figures[name] for name in names if name in figures), None)
    return None if value is None or not math.isfinite(value) else value * _US


def _histogram(section: Section) -> tuple[tuple[float, int], ...]:
    """Buckets of HdrHistogram as (ms, count); the whole-millisecond buckets of `histogram` are ignored."""
    hdr = any("Percentile" in name for name in section.figures) and "LatencyVariance(us)" not in section.figures
    if not hdr or not section.buckets:
        return ()
    return tuple((value * _US, int(count)) for value, count in sorted(section.buckets) if count)


def _statements(operations: Mapping[str, Operation]) -> Mapping[str, Operation]:
    """Operations that the database received; a read-modify-write counts as its read and its update."""
    single = {name: each for name, each in operations.items() if name != _name(_COMPOSITE)}
    return single or operations


def _transactions(kinds: Mapping[str, _Kind], overall: float) -> int:
    """Number of operations as YCSB counts them for `operationcount`: a read-modify-write is one.

    `overall`: operations of YCSB's throughput, used if its count of read-modify-writes is unreliable.
    """
    total = sum(each.done + each.failed for kind, each in kinds.items() if kind != _COMPOSITE)
    if _COMPOSITE not in kinds:
        return total
    whole = total - kinds[_COMPOSITE].done
    return round(overall) if is_series(kinds[_COMPOSITE].best) and total / 2 <= overall < whole else whole


def _overall(printed: Printed) -> tuple[float, float]:
    runtime = printed.figure("OVERALL", "RunTime(ms)")
    rate = printed.figure("OVERALL", "Throughput(ops/sec)")
    if runtime is None or rate is None:
        raise RunFailed(f"YCSB's report is missing or cut short{_because(printed)}")
    if not 0 < runtime < math.inf:
        raise RunFailed(f"YCSB ran for {runtime:g} ms{_because(printed)}")
    return runtime, rate


def _must_not_have_given_up(printed: Printed) -> None:
    if printed.complaints:
        grave = [line for line in printed.complaints if not line.startswith("Still waiting")]
        if grave:
            raise RunFailed(f"YCSB: {_one_line(grave[0])}{_reason(printed)}")
    if printed.exceptions:
        raise RunFailed(f"YCSB met an exception: {_one_line(cause(printed.exceptions))}")


def cause(exceptions: Sequence[str]) -> str:
    """Innermost cause of the exceptions, on which a reader can act."""
    causes = [line.removeprefix("Caused by: ") for line in exceptions if line.startswith("Caused by: ")]
    return causes[-1] if causes else exceptions[0]


def _reason(printed: Printed) -> str:
    """Cause that an exception or a binding names, to append to a sentence; empty if there is none."""
    if printed.exceptions:
        return f": {_one_line(cause(printed.exceptions))}"
    failed = next((line for line in printed.others if line.startswith("Operation failed: ")), None)
    return "" if failed is None else f": {_one_line(failed)}"


def _because(printed: Printed) -> str:
    """Like `_reason`, but without a cause the last line of output."""
    return _reason(printed) or (f": {_one_line(printed.others[-1])}" if printed.others else "")


def _must_be_free_of_errors(
    printed: Printed, kinds: Mapping[str, _Kind], errors: int, done: int, max_share: float
) -> None:
    if errors <= max_share * (done + errors):
        return
    worst = [
        f"{count} {kind} {answer}"
        for kind, each in kinds.items()
        for answer, count in (each.answers or {"FAILED": each.failed}).items()
        if answer not in _SUCCESS and count
    ]
    failures = ", ".join(worst) or "timed as failed"
    asks = "NOT_FOUND: were the records loaded? " if "NOT_FOUND" in failures else ""
    raise RunFailed(
        f"{errors} of {done + errors} operations did not succeed ({failures}), but YCSB counts them as "
        f"throughput{_because(printed)}",
        hint=f"{asks}`max_error_share` says how many are acceptable",
    )


def _must_hold_what_was_written(printed: Printed, kinds: Mapping[str, _Kind]) -> None:
    """Raise `RunFailed` if reads returned other data than were written; finding nothing is an error already."""
    answers = [each.answers for name, each in printed.sections.items() if _VERIFIED.fullmatch(name)]
    wrong = sum(count for each in answers for answer, count in each.items() if answer != "OK")
    empty = sum(each.get("ERROR", 0) for each in answers)
    wrong -= min(empty, kinds["READ"].failed if "READ" in kinds else 0)
    if wrong > 0:
        total = sum(count for each in answers for count in each.values())
        raise RunFailed(
            f"{wrong} of {total} reads returned other data than was written",
            hint="`dataintegrity` compares each field: load every record with it, and add no field",
        )


def _must_be_timed_and_answered(kinds: Mapping[str, _Kind], asked: Expected) -> None:
    both = asked.interval == "both" or any(each.intended for each in kinds.values())
    for kind, each in kinds.items():
        if both and (each.intended is None or each.actual is None):
            raise RunFailed(
                f"YCSB's report is cut short: {kind} is not timed from the intended and the actual send"
            )
        answered = sum(each.answers.values())
        if kind != _COMPOSITE and answered != each.done + each.failed:
            raise RunFailed(
                f"YCSB's report is cut short: {answered} return codes of {each.done + each.failed} {kind}"
            )


def _must_be_as_many(printed: Printed, whole: int, seconds: float, asked: Expected) -> None:
    if asked.operations is not None and whole != asked.operations:
        raise RunFailed(
            f"YCSB did {whole} operations of {asked.operations}{_because(printed)}",
            hint=None if asked.window_s is None else "is `measure_s`, which ends every run, long enough?",
        )
    if asked.seconds is not None and seconds < asked.seconds:
        raise RunFailed(f"cut short: {seconds:g} s of {asked.seconds:g} s{_because(printed)}")


def _windows(statuses: Sequence[Status], asked: Expected) -> tuple[Window, ...]:
    """Windows of the status lines, without the first line, at the very beginning, and a short window at the end."""
    width = asked.window_s
    if width is None:
        return ()
    regular = [status for status in statuses if status.end_s > 0 and abs(status.end_s / width % 1) < 1e-9]
    return tuple(
        Window(
            end_s=float(status.end_s),
            throughput_per_s=status.rate_per_s,
            latency_p95_ms=None,
            errors_per_s=None,
            reconnects_per_s=None,
        )
        for status in _first_of_each_second(regular)
        if status.rate_per_s is not None
    )


def _started_at(statuses: Sequence[Status]) -> float | None:
    """Start of the measure phase, by the status line with the least delay, as YCSB prints whole seconds only."""
    return min((status.at - status.end_s for status in statuses if status.at is not None), default=None)


def _first_of_each_second(statuses: Sequence[Status]) -> Iterator[Status]:
    """Yield the first line of each second: the final line may repeat a second, without a whole window."""
    seen: set[int] = set()
    for status in statuses:
        if status.end_s not in seen:
            seen.add(status.end_s)
            yield status


def _details(printed: Printed, asked: Expected, rate: float) -> dict[str, float]:
    details: dict[str, float] = {}
    if asked.target_per_s is not None:
        details["target_per_s"] = asked.target_per_s
        details["delivered_share"] = rate / asked.target_per_s
    for name, (section, figure) in _DETAILS.items():
        value = printed.figure(section, figure)
        if value is not None and math.isfinite(value):
            details[name] = value
    cleanup = printed.figure("CLEANUP", "AverageLatency(us)")
    if cleanup is not None and math.isfinite(cleanup):
        details["cleanup_mean_ms"] = cleanup * _US
    return details


def _name(kind: str) -> str:
    return kind.lower()


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
