"""Small expressions that the views' formulas are made of."""

from __future__ import annotations

import re
from collections.abc import Collection

import polars as pl

from tare.store.trace import Trace

KEYS = ("subject", "series", "at_ns")
NS = 1_000_000_000


def before(column: str) -> pl.Expr:
    """The reading before, null for the first of a series."""
    return pl.col(column).shift(1).over("series")


def grown(column: str) -> pl.Expr:
    """How much a counter has moved since the reading before; below zero where it fell."""
    return pl.col(column) - before(column)


def risen(column: str) -> pl.Expr:
    """The same, and 0 where the counter fell: what most tools make of that."""
    return grown(column).clip(lower_bound=0)


def seconds() -> pl.Expr:
    """Time since the reading before."""
    return grown("at_ns") / NS


def hundredths() -> pl.Expr:
    """Seconds by sysstat's clock: /proc/uptime has two decimals, and an interval of 0 counts as one hundredth."""
    mark = pl.col("at_ns") // (NS // 100)
    return (mark - mark.shift(1).over("series")).clip(lower_bound=1) / 100


def over_intervals(readings: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """One sample for each reading but the first of a series."""
    return readings.select(
        "subject",
        "series",
        before("at_ns").alias("from_ns"),
        pl.col("at_ns").alias("to_ns"),
        value.cast(pl.Float64).alias("value"),
    ).filter(pl.col("from_ns").is_not_null())


def at_readings(readings: pl.DataFrame, value: pl.Expr) -> pl.DataFrame:
    """One sample for each reading."""
    return readings.select(
        "subject",
        "series",
        pl.col("at_ns").alias("from_ns"),
        pl.col("at_ns").alias("to_ns"),
        value.cast(pl.Float64).alias("value"),
    )


_STACKED = re.compile(r"(dm-|md|loop|ram|zram|bcache|drbd|zd)\d")
"""Of device mapper, RAID, files, memory, caches and volumes of ZFS: what they write is others' too, or nobody's."""


def whole(names: Collection[str]) -> frozenset[str]:
    """Without partitions, which iostat and sar do not print: `sda1` beside `sda`, `nvme0n1p1` beside `nvme0n1`."""
    return frozenset(name for name in names if not any(_is_part(name, device) for device in names))


def lowest(names: Collection[str]) -> frozenset[str]:
    """Those among them that stand on no other, as far as names tell; all whole ones where each does."""
    devices = whole(names)
    return frozenset(name for name in devices if not _STACKED.match(name)) or devices


def _is_part(name: str, device: str) -> bool:
    """By block/partitions/core.c of the kernel: behind a device that ends in a digit a `p` and the number."""
    rest = name.removeprefix(device)
    return rest != name and re.fullmatch(r"p\d+" if device[-1:].isdecimal() else r"\d+", rest) is not None


_BATCH_PAGES = 64
"""MEMCG_CHARGE_BATCH of include/linux/memcontrol.h."""


def lag_bytes(trace: Trace, _readings: pl.DataFrame) -> float:
    """Bytes by which a figure of memory.stat may be off when it is read.

    Reading adds up what the CPUs hold back only once that is more than a batch for each of them (mm/memcontrol.c,
    memcg_vmstats_needs_flush); else it is left to a worker that comes every two seconds.
    """
    return float(_BATCH_PAGES * trace.page_bytes * trace.cpus)


def lag_percent(trace: Trace, readings: pl.DataFrame) -> float:
    """The same as part of the least limit that the readings of this group had."""
    limit = readings["limit_bytes"].drop_nulls().min()
    return lag_bytes(trace, readings) / limit * 100 if isinstance(limit, int) and limit > 0 else 0.0
