"""The kernel's counters as tare-probe reads them: the reference for the other views."""

from __future__ import annotations

import polars as pl

from tare.analyze.views.formulas import at_readings, grown, over_intervals
from tare.analyze.views.model import Formula, Grain, Kind, Measure, Quantity, View


def cpu_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """CPU time / time, in percent of one CPU; null if the counter fell."""
    usage = grown("usage_ns")
    return over_intervals(readings, pl.when(usage >= 0).then(usage / grown("at_ns") * 100))


def memory_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """All memory that is charged to the group."""
    return at_readings(readings, pl.col("memory_bytes"))


def anon_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Anonymous memory of the group's programs."""
    return at_readings(readings, pl.col("anon_bytes"))


def block_read_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes of read requests issued since the group was opened."""
    return at_readings(readings, pl.col("block_read_bytes"))


def block_written_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes of write requests issued since the group was opened."""
    return at_readings(readings, pl.col("block_written_bytes"))


def _bytes(
    printed: tuple[str, str], where: tuple[Measure, Kind, str], formula: Formula, says: str, cites: str
) -> Quantity:
    (name, shown), (measure, kind, readings) = printed, where
    return Quantity(name, shown, "B", measure, kind, readings, formula, says, cites, step=1.0)


_MEMORY = (Measure.CONTAINER_MEMORY, Kind.GAUGE, "cgroup memory")
_READ = (Measure.CONTAINER_READ, Kind.TOTAL, "cgroup block")
_WRITTEN = (Measure.CONTAINER_WRITTEN, Kind.TOTAL, "cgroup block")
_REQUESTS = "kernel: tracepoint block_rq_issue (include/trace/events/block.h)"

KERNEL = View(
    tool="tare-probe",
    title="tare-probe (counters)",
    cadence="0.1 Hz to 1 kHz, on an absolute grid; late and missed ticks are in the trace.",
    quantities=(
        Quantity(
            name="cpu_percent",
            shown="CPU time",
            unit="%",
            measure=Measure.CONTAINER_CPU,
            kind=Kind.RATE,
            readings="cgroup cpu",
            formula=cpu_percent,
            says="Δusage / Δtime * 100",
            cites="kernel: cpuacct.usage (v1), cpu.stat usage_usec (v2)",
            step=1e-7,
            grain=Grain("cgroup", "usage_ns", lambda _: 100 / 1e9),
            cores=lambda _: 1.0,
        ),
        _bytes(("memory_bytes", "memory charged"), _MEMORY, memory_bytes,
               "usage, page cache included", "kernel: memory.usage_in_bytes (v1), memory.current (v2)"),
        _bytes(("anon_bytes", "of it, programs'"), _MEMORY, anon_bytes,
               "total_rss (v1) or anon (v2)", "kernel: memory.stat"),
        _bytes(("block_read_bytes", "block requests, read"), _READ, block_read_bytes,
               "bytes of requests issued since the group was opened", _REQUESTS),
        _bytes(("block_written_bytes", "block requests, written"), _WRITTEN, block_written_bytes,
               "bytes of requests issued since the group was opened", _REQUESTS),
    ),
    blind_to=(
        ("what the kernel does not count: writeback that it charges to the root group on v1 is not in the "
        "container's block requests either"),
        "block requests where tracing programs are not allowed",
    ),
)  # fmt: skip
