"""Small traces and readings made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from tare.store.trace import Trace

S = 1_000_000_000
MIB = 2**20

HEADER = {
    "trace_version": 1,
    "cpus": 2,
    "page_bytes": 4096,
    "period_ns": S // 2,
    "ticks": {"jiffy_ns": 4_000_000, "user_hz": 100},
    "started_monotonic_ns": 0,
    "started_realtime_ns": 1_000 * S,
}
QUANTA = {
    "cgroup": {"usage_ns": 4_000_000},
    "cpu": {"user_ticks": 2},
    "disk": {"busy_ms": 4, "weighted_ms": 4},
    "process": {"user_ticks": 2, "system_ticks": 2},
}
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
DISK = (
    "reads", "reads_merged", "read_sectors", "read_ms", "writes", "writes_merged", "written_sectors", "write_ms",
    "in_flight", "busy_ms", "weighted_ms", "flushes", "flush_ms",
)  # fmt: skip


def readings(at_s: Sequence[float], subject: str = "db", **columns: Sequence[Any]) -> pl.DataFrame:
    """One series, as `READINGS` give them."""
    whole = {"subject": [subject] * len(at_s), "series": [1] * len(at_s), "at_ns": [round(at * S) for at in at_s]}
    return pl.DataFrame({**whole, **columns}, strict=False)


def values(samples: pl.DataFrame) -> list[float | None]:
    """Of a formula, in order."""
    return [None if value is None else round(float(value), 6) for value in samples["value"]]


def cpu_ticks(at_s: Sequence[float], **fields: Sequence[int]) -> pl.DataFrame:
    """Readings of a CPU; fields that are not given stand still."""
    still = [0] * len(at_s)
    return readings(at_s, "0", **{f"{field}_ticks": fields.get(field, still) for field in FIELDS})


def trace(seconds: int = 4, *, steal: int = 0, empty_io: bool = True, name: str = "db") -> Trace:
    """Two readings a second of a machine of two CPUs with one container that uses 60 % of a CPU.

    It has 100 MiB charged, 30 of it page cache, 20 inactive, and writes 8 MiB a second directly; the device writes
    10. `steal`: ticks a second and CPU. `empty_io`: the block I/O files of control groups have nothing to say.
    """
    ticks = range(2 * seconds + 1)
    at = [n * S // 2 for n in ticks]
    written = [n * 4 * MIB for n in ticks]
    nothing = [None] * len(at)
    cgroup = pl.DataFrame(
        {
            **_keys(ticks, 11, name),
            "usage_t0_ns": at, "usage_t1_ns": at, "usage_ns": [n * 300_000_000 for n in ticks],
            "memory_t0_ns": at, "memory_t1_ns": at, "memory_bytes": [100 * MIB] * len(at),
            "inactive_file_bytes": [20 * MIB] * len(at), "cache_bytes": [30 * MIB] * len(at),
            "anon_bytes": [65 * MIB] * len(at),
            "limit_t0_ns": [each if n % 2 == 0 else None for n, each in enumerate(at)],
            "memory_limit_bytes": [200 * MIB if n % 2 == 0 else None for n in ticks],
            "io_t0_ns": at, "io_t1_ns": at,
            "read_bytes": nothing if empty_io else [0] * len(at),
            "written_bytes": nothing if empty_io else written,
            "bfq_t0_ns": at, "bfq_t1_ns": at, "bfq_read_bytes": nothing, "bfq_written_bytes": nothing,
            "block_at_ns": at, "block_read_bytes": [0] * len(at), "block_written_bytes": written,
        },
        schema_overrides=dict.fromkeys(
            ("read_bytes", "written_bytes", "bfq_read_bytes", "bfq_written_bytes", "memory_limit_bytes"), pl.Int64
        ),
    )  # fmt: skip
    spent = {
        "0": {"user": 25, "system": 5, "idle": 20 - steal // 2, "steal": steal // 2},
        "1": {"user": 5, "idle": 45 - steal // 2, "steal": steal // 2},
    }
    both = {field: sum(each.get(field, 0) for each in spent.values()) for field in FIELDS}
    cpus = [
        _cpu(ticks, at, target, cpu, each) for target, (cpu, each) in enumerate({"all": both, **spent}.items(), 2)
    ]
    disk = pl.DataFrame(
        {
            **_keys(ticks, 10, "vda"), "t0_ns": at, "t1_ns": at, **{column: [0] * len(at) for column in DISK},
            "writes": [n * 50 for n in ticks], "written_sectors": [n * 10240 for n in ticks],
            "write_ms": [n * 100 for n in ticks], "busy_ms": [n * 200 for n in ticks],
            "weighted_ms": [n * 100 for n in ticks],
        }
    )  # fmt: skip
    process = pl.DataFrame(
        {
            **_keys(ticks, 12, name), "pid": [77] * len(at), "stat_t0_ns": at, "stat_t1_ns": at,
            "user_ticks": [n * 25 for n in ticks], "system_ticks": [n * 5 for n in ticks],
            "minor_faults": [0] * len(at), "major_faults": [0] * len(at), "virtual_bytes": [MIB] * len(at),
            "resident_bytes": [70 * MIB] * len(at), "io_t0_ns": at, "io_t1_ns": at, "read_bytes": [0] * len(at),
            "written_bytes": written, "cancelled_bytes": [0] * len(at),
            "cpu_t0_ns": at, "cpu_t1_ns": at, "cpu_ns": [n * 300_000_000 for n in ticks],
        }
    )  # fmt: skip
    memory = pl.DataFrame(
        {
            **_keys(ticks, 1, "host"), "meminfo_t0_ns": at, "meminfo_t1_ns": at,
            "total_bytes": [1000 * MIB] * len(at), "free_bytes": [400 * MIB] * len(at),
            "available_bytes": [700 * MIB] * len(at),
            "buffers_bytes": [50 * MIB] * len(at), "cached_bytes": [250 * MIB] * len(at),
            "slab_bytes": [100 * MIB] * len(at), "vmstat_t0_ns": at, "vmstat_t1_ns": at,
            "pgpgin_kib": [0] * len(at), "pgpgout_kib": [n * 4 * 1024 for n in ticks],
        }
    )  # fmt: skip
    interface = pl.concat(
        [
            _interface(ticks, at, 20, "host/eth0", 512),
            _interface(ticks, at, 21, "db/lo", 9999),
            _interface(ticks, at, 22, "db/eth0", 1024),
        ]
    )
    tables = {
        "cgroup": cgroup, "cpu": pl.concat(cpus), "disk": disk, "process": process, "memory": memory,
        "interface": interface, "tick": pl.DataFrame({"tick": list(ticks), "woke_ns": at}),
    }  # fmt: skip
    return Trace(HEADER, QUANTA, True, tables)


def _keys(ticks: range, target: int, name: str) -> dict[str, Sequence[Any]]:
    return {"tick": list(ticks), "target": [target] * len(ticks), "name": [name] * len(ticks)}


def _cpu(ticks: range, at: list[int], target: int, name: str, spent: Mapping[str, int]) -> pl.DataFrame:
    counters = {f"{field}_ticks": [n * spent.get(field, 0) for n in ticks] for field in FIELDS}
    return pl.DataFrame({**_keys(ticks, target, name), "t0_ns": at, "t1_ns": at, **counters})


def _interface(ticks: range, at: list[int], target: int, name: str, rate: int) -> pl.DataFrame:
    moved = {"rx_bytes": [n * rate for n in ticks], "tx_bytes": [n * rate * 2 for n in ticks]}
    return pl.DataFrame({**_keys(ticks, target, name), "t0_ns": at, "t1_ns": at, **moved})


def write(of: Trace, path: Path) -> None:
    """As tare-probe leaves it."""
    path.mkdir(parents=True)
    (path / "trace.json").write_text(
        json.dumps({"header": of.header, "quanta": of.quanta, "complete": of.complete})
    )
    for name, table in of.tables.items():
        table.write_parquet(path / f"{name}.parquet")
