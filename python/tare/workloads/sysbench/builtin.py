"""Common parts of sysbench 1.0.20's built-in tests (cpu, fileio): options, and the parser and checks of the report.

Each test prints windows of its own; the rest of the report is the same (`sb_report_cumulative`, sysbench.c).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.errors import RunFailed
from tare.workloads import ClientCommand, Measurement, Parameters, Window
from tare.workloads.sysbench.measurement import due_s, latency_of, must_agree_on_p95, must_have_ended_well, text_of
from tare.workloads.sysbench.output import (
    STATISTICS,
    Bucket,
    Figures,
    complaints_in,
    figures_in,
    has_started,
    histogram_in,
    whole_lines,
)

_ENV: Mapping[str, str] = {"LC_ALL": "C"}
_FORCED_SHUTDOWN_S = 30
_MARGIN_S = 60.0


@dataclass(frozen=True)
class Form:
    """Output that is specific to one test. `window`: parses a line into a window, `None` for other lines."""

    unit: str
    window: Callable[[str], Window | None]
    figures: Mapping[str, re.Pattern[str]]


@dataclass(frozen=True)
class Report:
    """Parsed output of one call."""

    started: bool
    windows: tuple[Window, ...]
    histogram: tuple[Bucket, ...]
    figures: Figures
    missing: tuple[str, ...]
    """Figures of a complete report that this one lacks."""
    complaints: tuple[str, ...]

    def figure(self, name: str) -> float:
        """First figure of a line."""
        return self.figures[name][0]


def call(test: str, options: tuple[str, ...], *, seconds: float, workdir: str | None = None) -> ClientCommand:
    """Describe the command that runs a built-in test for `seconds`."""
    argv = (
        "sysbench",
        test,
        f"--time={seconds:.0f}",
        "--events=0",
        "--rate=0",
        "--percentile=95",
        "--histogram=on",
        f"--forced-shutdown={_FORCED_SHUTDOWN_S}",
        *options,
        "run",
    )
    return ClientCommand(argv, _ENV, {}, timeout_s=seconds + _FORCED_SHUTDOWN_S + _MARGIN_S, workdir=workdir)


def prepare(test: str, options: tuple[str, ...], *, timeout_s: float, workdir: str) -> ClientCommand:
    """Describe the command that prepares the files of a built-in test."""
    return ClientCommand(("sysbench", test, *options, "prepare"), _ENV, {}, timeout_s=timeout_s, workdir=workdir)


def read_report(text: str, form: Form) -> Report:
    """Parse a report. A last line without its end was cut, so its figures are ignored."""
    *lines, rest = whole_lines(text)
    patterns = {**form.figures, **STATISTICS}
    figures = figures_in(lines, patterns)
    windows = (form.window(line.rstrip()) for line in lines)
    return Report(
        started=has_started(lines),
        windows=tuple(window for window in windows if window is not None),
        histogram=histogram_in(lines),
        figures=figures,
        missing=tuple(name for name in patterns if name not in figures),
        complaints=complaints_in((*lines, rest)),
    )


def report_of(parameters: Parameters, form: Form, stdout: Path, stderr: Path, code: int) -> Report:
    """Parse the report of a measure phase. Raises `RunFailed`, with the reason on one line, if it is incomplete."""
    report = read_report(text_of(stdout), form)
    last_s = report.windows[-1].end_s if report.windows else 0.0
    must_have_ended_well(report.complaints, last_s, text_of(stderr), code)
    if not report.started:
        raise RunFailed("sysbench never started its threads")
    if report.missing:
        raise RunFailed(f"sysbench's report is cut short: it lacks {', '.join(report.missing)}")
    seconds, asked = report.figure("total_time_s"), parameters.measure_s
    if report.figure("events") == 0:
        raise RunFailed(f"none of the {form.unit} in {seconds:g} s")
    if seconds < asked:
        raise RunFailed(f"cut short: {seconds:g} s of {asked:g} s")
    if last_s < due_s(parameters):
        raise RunFailed(f"cut short: the last window ends at {last_s:g} s of {asked:g} s")
    _must_agree(report)
    return report


def measurement_of(report: Report, form: Form, details: Mapping[str, float]) -> Measurement:
    """Make the measurement of a complete report."""
    events, seconds = int(report.figure("events")), report.figure("total_time_s")
    return Measurement(
        operations=events,
        unit=form.unit,
        duration_s=seconds,
        throughput_per_s=events / seconds,
        queries_per_s=None,
        errors=0,
        reconnects=0,
        latency=latency_of(report),
        histogram=tuple((bucket.value_ms, bucket.count) for bucket in report.histogram),
        windows=report.windows,
        details={
            **details,
            "latency_sum_ms": report.figure("latency_sum_ms"),
            "thread_events_mean": report.figures["thread_events"][0],
            "thread_events_stddev": report.figures["thread_events"][1],
            "thread_time_mean_s": report.figures["thread_time_s"][0],
            "thread_time_stddev_s": report.figures["thread_time_s"][1],
        },
    )


def _must_agree(report: Report) -> None:
    """Raise `RunFailed` if parts of the report disagree: then something was lost or misread."""
    events, counted = report.figure("events"), sum(bucket.count for bucket in report.histogram)
    if counted != events:
        raise RunFailed(f"sysbench's report contradicts itself: {counted} events in the histogram of {events:.0f}")
    must_agree_on_p95(report)
