"""Turn the output of fio into a measurement, or raise the reason why it is incomplete."""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence
from errno import errorcode
from functools import partial
from pathlib import Path

from tare.errors import RunFailed
from tare.workloads import Latency, Measurement, Operation, Window
from tare.workloads.fio.output import DIRECTIONS, Entry, Job, Timed, ended_by, entries_in, jobs_in, printed_at
from tare.workloads.fio.parameters import FioParameters
from tare.workloads.merged import merge_histograms, merge_latencies, percentile
from tare.workloads.output_text import output_text
from tare.workloads.sysbench.measurement import due_s

RESOLUTION = 1 / 64
"""fio's buckets: 64 to each power of two of nanoseconds (FIO_IO_U_PLAT_BITS, stat.h)."""
_SHORT = 0.01
"""fio reads its clock only now and then; a job that lacks a larger share of its time was cut short."""
_OFF_GRID = 0.25
_text = partial(output_text, tool="fio", most_mib=64)
_MIB = 1 << 20


def measurement(own: FioParameters, stdout: Path, stderr: Path, logs: Sequence[Path], code: int) -> Measurement:
    """Parse the output of one call. Raises `RunFailed` with the reason on one line."""
    text, complaints = _text(stdout), _text(stderr)
    jobs = _complete_jobs(own, text, complaints, code)
    windows = _windows(own, [_entries(log) for log in logs])
    seconds = max(job.runtime_s for job in jobs)
    kinds = {kind: figures for kind in (*DIRECTIONS, "fsync") if (figures := _kind(jobs, kind)).operations}
    requests = [kinds[kind] for kind in DIRECTIONS if kind in kinds]
    histogram = merge_histograms(each.histogram for each in requests)
    done = sum(each.done for each in requests)
    return Measurement(
        operations=done,
        unit="requests",
        duration_s=seconds,
        throughput_per_s=done / seconds,
        queries_per_s=None,
        errors=0,
        reconnects=0,
        latency=merge_latencies(requests, histogram, RESOLUTION),
        histogram=histogram,
        windows=windows,
        details=_details(jobs, kinds, seconds),
        by_operation=kinds,
        started_at=None if (ended_at := printed_at(text)) is None else ended_at - seconds,
    )


def _complete_jobs(own: FioParameters, text: str, complaints: str, code: int) -> tuple[Job, ...]:
    """Jobs of the report. Raises `RunFailed` if anything is missing or wrong."""
    by = ended_by(text) or ended_by(complaints) or (code - 128 if 128 < code < 128 + signal.NSIG else -code)
    if by > 0:
        name = signal.Signals(by).name if by in signal.valid_signals() else f"signal {by}"
        raise RunFailed(f"fio was ended by {name}")
    jobs = jobs_in(text)
    if jobs is not None and (wrong := next((job.error for job in jobs if job.error), 0)):
        raise RunFailed(f"fio: {errorcode.get(wrong, f'error {wrong}')}{_because(complaints)}")
    if code != 0:
        raise RunFailed(f"fio ended with {code}{_because(complaints)}")
    if jobs is None:
        raise RunFailed(f"fio's report is missing or cut short{_because(complaints)}")
    _must_have_done_all(own, jobs, _because(complaints))
    _must_agree(own, jobs)
    return jobs


def _must_have_done_all(own: FioParameters, jobs: Sequence[Job], because: str) -> None:
    if len(jobs) != own.numjobs:
        raise RunFailed(f"fio reports {len(jobs)} jobs of {own.numjobs}{because}")
    shortest = min(job.runtime_s for job in jobs)
    if shortest < own.measure_s * (1 - _SHORT):
        raise RunFailed(f"cut short: {shortest:g} s of {own.measure_s:g} s{because}")
    if not all(any(job.kinds[kind].count for kind in DIRECTIONS) for job in jobs):
        raise RunFailed(f"a fio job made no request in {own.measure_s:g} s")
    if own.syncs and not all(job.kinds["fsync"].count for job in jobs):
        raise RunFailed("fio was to make its files durable, but a job reported no fsync")


def _must_agree(own: FioParameters, jobs: Sequence[Job]) -> None:
    if incomplete := sum(job.incomplete for job in jobs):
        raise RunFailed(f"{incomplete} requests moved less than {own.bs}, or were dropped")
    for timed in (timed for job in jobs for timed in job.kinds.values()):
        if (held := sum(times for _, times in timed.histogram)) != timed.count:
            raise RunFailed(f"fio's report contradicts itself: {held} in the histogram of {timed.count} requests")


def _because(complaints: str) -> str:
    """First complaint of fio; later ones follow from it."""
    words = next((line for line in complaints.splitlines() if line.startswith("fio:")), None)
    return "" if words is None else f": {words.removeprefix('fio:').strip()}"


def _entries(log: Path) -> tuple[Entry, ...]:
    try:
        return entries_in(_text(log))
    except FileNotFoundError:
        raise RunFailed(f"fio left no {log.name}, the windows of a job") from None


def _windows(own: FioParameters, logs: Sequence[Sequence[Entry]]) -> tuple[Window, ...]:
    """Windows that every job reported. Raises `RunFailed` if any but the last is missing."""
    jobs = [_rates(entries, own.window_s) for entries in logs]
    last = min(max(rates, default=0) for rates in jobs)
    if last * own.window_s < due_s(own):
        raise RunFailed(f"cut short: a job's last window ends at {last * own.window_s:g} s of {own.measure_s:g} s")
    return tuple(
        Window(
            end_s=n * own.window_s,
            throughput_per_s=sum(rates.get(n, 0.0) for rates in jobs),
            latency_p95_ms=None,
            errors_per_s=0.0,
            reconnects_per_s=0.0,
        )
        for n in range(1, last + 1)
    )


def _rates(entries: Sequence[Entry], width_s: float) -> dict[int, float]:
    """Number of a window → requests per second of one job.

    fio writes no entry for a window without requests. It also skips a window if it looks too late; the next entry
    then has the rate over all the time since the entry before (`__add_samples`, stat.c).
    """
    rates: dict[int, float] = {}
    for direction in DIRECTIONS.values():
        seen = 0
        for entry in (entry for entry in entries if entry.direction == direction):
            n = round(entry.end_s / width_s)
            late = abs(entry.end_s / width_s - n) > _OFF_GRID
            for window in range(seen + 1 if late else n, n + 1):
                rates[window] = rates.get(window, 0.0) + entry.rate_per_s
            seen = n
    return rates


def _kind(jobs: Sequence[Job], kind: str) -> Operation:
    """Figures of one kind of request over all jobs."""
    parts = [_operation(job.kinds[kind]) for job in jobs if job.kinds[kind].count]
    histogram = merge_histograms(part.histogram for part in parts)
    operations = sum(part.done for part in parts)
    latency = merge_latencies(parts, histogram, RESOLUTION) if parts else _operation(jobs[0].kinds[kind]).latency
    return Operation(operations=operations, errors=0, latency=latency, histogram=histogram)


def _operation(timed: Timed) -> Operation:
    latency = Latency(
        mean_ms=timed.mean_ms,
        min_ms=timed.min_ms,
        max_ms=timed.max_ms,
        p50_ms=percentile(timed.histogram, 50),
        p95_ms=percentile(timed.histogram, 95),
        p99_ms=percentile(timed.histogram, 99),
        resolution=RESOLUTION if timed.histogram else None,
        blind_to_stalls=True,
        timed_from="actual-send",
    )
    return Operation(operations=timed.count, errors=0, latency=latency, histogram=timed.histogram)


def _details(jobs: Sequence[Job], kinds: Mapping[str, Operation], seconds: float) -> dict[str, float]:
    rates = {f"{kind}s_per_s": figures.done / seconds for kind, figures in kinds.items()}
    moved = {
        name: sum(job.moved[kind] for job in jobs) / _MIB / seconds
        for kind, name in (("read", "read_mib_per_s"), ("write", "written_mib_per_s"))
        if kind in kinds
    }
    cpu = {
        "usr_cpu_percent": math.fsum(job.usr_cpu_percent for job in jobs) / len(jobs),
        "sys_cpu_percent": math.fsum(job.sys_cpu_percent for job in jobs) / len(jobs),
    }
    return {**rates, **moved, **cpu}
