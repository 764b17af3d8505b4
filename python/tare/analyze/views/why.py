"""Reasons why tools differ on a trace; each checks the counters and yields sentences only if it applies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from tare.analyze.views.containers import SYSTEM_S
from tare.analyze.views.formulas import lowest, over_intervals, risen
from tare.analyze.views.readings import cgroup_block, cgroup_cpu, cgroup_io, cgroup_memory, disks, every, host_cpu
from tare.store.trace import Trace

_WORTH_TELLING = 0.001
"""Least share worth reporting: of the host's time for steal, and of memory for page cache."""


def why(trace: Trace, interval_s: float) -> tuple[str, ...]:
    """Reasons that apply, one or two sentences each."""
    return tuple(sentence for reason in REASONS for sentence in reason(trace, interval_s))


def steps(trace: Trace, interval_s: float) -> Iterator[str]:
    """Yield the steps in which counters of time move."""
    quantum = trace.quantum("cgroup", "usage_ns")
    if quantum is not None and trace.table("cgroup") is not None:
        points = quantum / 1e9 / interval_s * 100
        yield (
            f"A control group's CPU time moves in steps of {quantum / 1e6:.3g} ms: at one sample every "
            f"{interval_s:g} s a step is {points:.2g} % of a CPU, and no tool can see less."
        )
    if trace.table("cpu") is not None:
        tick_ms = 1000 / trace.user_hz
        yield (
            f"/proc/stat and /proc/PID/stat print whole ticks of {tick_ms:g} ms: "
            f"{tick_ms / 10 / interval_s:.2g} % of a CPU at that interval for mpstat, sar and pidstat."
        )


def hundred(trace: Trace, _interval_s: float) -> Iterator[str]:
    """Yield the meanings of 100 %."""
    if trace.cpus > 1 and trace.table("cpu") is not None:
        yield (
            f"100 % is one CPU to docker stats, podman stats and pidstat, and all {trace.cpus} CPUs to mpstat "
            "and sar; cAdvisor and metrics-server count CPUs."
        )


def steal(trace: Trace, _interval_s: float) -> Iterator[str]:
    """Yield the effect of time that the hypervisor kept (steal)."""
    whole = _ends(host_cpu(trace).filter(pl.col("subject") == "all"))
    if whole.is_empty():
        return
    moved = {name: whole[name][-1] - whole[name][0] for name in whole.columns if name.endswith("_ticks")}
    seven = sum(moved[f"{field}_ticks"] for field in ("user", "nice", "system", "idle", "iowait", "irq", "softirq"))
    stolen = moved["steal_ticks"] / (seven + moved["steal_ticks"]) if seven + moved["steal_ticks"] > 0 else 0.0
    if stolen >= _WORTH_TELLING:
        yield (
            f"The hypervisor kept {stolen * 100:.1f} % of the CPUs' time (steal). mpstat and sar show it; "
            f"docker stats leaves it out of its denominator and so shows {stolen / (1 - stolen) * 100:.1f} % "
            "more CPU than a container got; cAdvisor, podman stats and pidstat divide by time and show what it "
            "got."
        )


def docker_clock(trace: Trace, interval_s: float) -> Iterator[str]:
    """Yield the effect of docker's denominator, which is not a clock."""
    readings = every(cgroup_cpu(trace), interval_s)
    if readings.is_empty():
        return
    taken = over_intervals(readings, SYSTEM_S).drop_nulls("value")
    ratio = (taken["value"] / ((taken["to_ns"] - taken["from_ns"]) / 1e9)).drop_nulls()
    if len(ratio) > 1:
        least, most = float(min(ratio)), float(max(ratio))
        yield (
            f"docker stats divides by ticks of /proc/stat, not by time: sample by sample that was {least:.3f} "
            f"to {most:.3f} of the time that passed, and single values err by as much."
        )


def page_cache(trace: Trace, _interval_s: float) -> Iterator[str]:
    """Yield what each tool subtracts from memory usage."""
    reasons = []
    for (subject,), rows in cgroup_memory(trace).group_by("subject", maintain_order=True):
        usage, inactive, cache = (
            float(rows[name].sum()) / len(rows) for name in ("memory_bytes", "inactive_file_bytes", "cache_bytes")
        )
        if usage > 0 and cache / usage >= _WORTH_TELLING:
            reasons.append(
                f"{subject} had {_mib(usage)}, of which {_mib(cache)} page cache and {_mib(inactive)} inactive"
            )
    if reasons:
        yield (
            f"Page cache counts as memory of who read or wrote first. On average {'; '.join(reasons)}. docker "
            "stats since 20.10, podman stats, cAdvisor's working set and metrics-server take the inactive part "
            "off, docker stats until 19.03 took off all, and pidstat's RSS never had any but mapped files."
        )


def empty_files(trace: Trace, _interval_s: float) -> Iterator[str]:
    """Yield a note on empty block I/O files, which do not mean zero."""
    stated, counted = cgroup_io(trace), cgroup_block(trace)
    files = ("read_bytes", "written_bytes", "bfq_read_bytes", "bfq_written_bytes")
    empty = [
        str(subject)
        for (subject,), rows in stated.group_by("subject", maintain_order=True)
        if all(rows[name].is_null().all() for name in files)
    ]
    known = [requests for subject in empty for requests in _requests(counted, subject)]
    if empty:
        yield (
            f"The block I/O files of {_listed(empty)} stayed empty, and empty is not zero: docker stats and "
            f"podman stats print 0 B, cAdvisor has no series. {_nobody_or(known)} On control groups v1 a kernel "
            "since 2024 counts in those files only once a throttle rule exists on the device."
        )


def _requests(counted: pl.DataFrame, subject: str) -> Iterator[str]:
    columns = ("block_read_bytes", "block_written_bytes")
    own = _ends(counted.filter(pl.col("subject") == subject).drop_nulls(columns))
    if not own.is_empty():
        read, written = (
            own[f"block_{way}_bytes"][-1] - own[f"block_{way}_bytes"][0] for way in ("read", "written")
        )
        yield f"{subject} {_mib(read)} read and {_mib(written)} written"


def _nobody_or(names: list[str]) -> str:
    if not names:
        return "No tracing program counted requests either, so reads and writes are unknown."
    return f"The tracing program counted meanwhile: {'; '.join(names)}. No tool shows a container's disk I/O here."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def writeback(trace: Trace, _interval_s: float) -> Iterator[str]:
    """Yield the writes of devices that no group is charged with."""
    devices = disks(trace)
    below = lowest(devices["subject"].unique().to_list())
    sectors = _moved(devices.filter(pl.col("subject").is_in(list(below))), "written_sectors")
    groups = _moved(cgroup_block(trace), "block_written_bytes")
    if sectors is None or groups is None:
        return
    device = sectors * 512
    if device > groups:
        yield (
            f"The host's devices wrote {_mib(device)}, of which {_mib(groups)} were the watched groups' own "
            "requests. The rest is others' and, on control groups v1, buffered writes: they reach the disk in "
            "the root group's name, iostat sees them and no container's counter does; pidstat counts them when "
            "the page is dirtied."
        )


def ranges(trace: Trace, interval_s: float) -> Iterator[str]:
    """Yield the effect of the range of rate()."""
    if trace.table("cgroup") is not None:
        yield (
            "rate() spreads what happened over its range (5 s here) and guesses beyond its first sample, so "
            f"cAdvisor's curve lags and is flatter than tools that print every {interval_s:g} s."
        )


REASONS: tuple[Callable[[Trace, float], Iterator[str]], ...] = (
    hundred,
    steps,
    docker_clock,
    steal,
    ranges,
    page_cache,
    empty_files,
    writeback,
)


def _moved(readings: pl.DataFrame, column: str) -> float | None:
    """Total growth of the counters of all series; `None` without two readings of any."""
    if readings.is_empty():
        return None
    known = readings.select(risen(column))[column].drop_nulls()
    return float(known.sum()) if len(known) else None


def _ends(readings: pl.DataFrame) -> pl.DataFrame:
    """First and last reading; empty for a single reading."""
    return pl.concat([readings[:1], readings[-1:]]) if len(readings) > 1 else readings.clear()


def _mib(count_bytes: float) -> str:
    return f"{count_bytes / 2**20:,.1f} MiB"
