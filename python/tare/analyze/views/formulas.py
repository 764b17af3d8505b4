"""Expressions from which the views' formulas are built."""

from __future__ import annotations

import re
from collections.abc import Collection

import polars as pl

from tare.store.trace import Trace

KEYS = ("subject", "series", "at_ns")
NS = 1_000_000_000


def before(column: str) -> pl.Expr:
    """Value of the previous reading; null for the first of a series."""
    return pl.col(column).shift(1).over("series")


def grown(column: str) -> pl.Expr:
    """Change of a counter since the previous reading; negative if it fell."""
    return pl.col(column) - before(column)


def risen(column: str) -> pl.Expr:
    """Growth of a counter since the previous reading; 0 if it fell, as in most tools."""
    return grown(column).clip(lower_bound=0)


def seconds() -> pl.Expr:
    """Seconds since the previous reading."""
    return grown("at_ns") / NS


def hundredths() -> pl.Expr:
    """Seconds by sysstat's clock: /proc/uptime has two decimals, and an interval of 0 counts as 0.01 s."""
    mark = pl.col("at_ns") // (NS // 100)
    return (mark - mark.shift(1).over("series")).clip(lower_bound=1) / 100


def over_intervals(readings: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """Make one sample for each reading except the first of a series."""
    return readings.select(
        "subject",
        "series",
        before("at_ns").alias("from_ns"),
        pl.col("at_ns").alias("to_ns"),
        value.cast(pl.Float64).alias("value"),
    ).filter(pl.col("from_ns").is_not_null())


def at_readings(readings: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """Make one sample for each reading."""
    return readings.select(
        "subject",
        "series",
        pl.col("at_ns").alias("from_ns"),
        pl.col("at_ns").alias("to_ns"),
        value.cast(pl.Float64).alias("value"),
    )


_STACKED = re.compile(r"(dm-|md|loop|ram|zram|bcache|drbd|zd)\d")
"""Stacked devices (device mapper, RAID, loop, RAM, caches, ZFS volumes): other devices count their I/O, or none."""


def whole(names: Collection[str]) -> frozenset[str]:
    """Devices without partitions such as `sda1` of `sda`, which iostat and sar do not print."""
    return frozenset(name for name in names if not any(_is_part(name, device) for device in names))


def lowest(names: Collection[str]) -> frozenset[str]:
    """Whole devices that are not stacked on others, judged by name; all whole devices if all are stacked."""
    devices = whole(names)
    return frozenset(name for name in devices if not _STACKED.match(name)) or devices


def _is_part(name: str, device: str) -> bool:
    """Whether a name is a device's partition; after a digit, `p` precedes the number (block/partitions/core.c)."""
    rest = name.removeprefix(device)
    return rest != name and re.fullmatch(r"p\d+" if device[-1:].isdecimal() else r"\d+", rest) is not None


_BATCH_PAGES = 64
"""MEMCG_CHARGE_BATCH of include/linux/memcontrol.h."""


def lag_bytes(trace: Trace, _readings: pl.DataFrame) -> float:
    """Largest error of a figure of memory.stat, in bytes.

    A read flushes the counts that CPUs hold back only if they exceed a batch for each CPU (mm/memcontrol.c,
    memcg_vmstats_needs_flush); otherwise a worker flushes them every two seconds.
    """
    return float(_BATCH_PAGES * trace.page_bytes * trace.cpus)


def lag_percent(trace: Trace, readings: pl.DataFrame) -> float:
    """`lag_bytes` in percent of the lowest limit in the readings of this group."""
    limit = readings["limit_bytes"].drop_nulls().min()
    return lag_bytes(trace, readings) / limit * 100 if isinstance(limit, int) and limit > 0 else 0.0
