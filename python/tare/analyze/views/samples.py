"""Small expressions of which the formulas are made. A series is one incarnation of a subject, in order of time."""

from __future__ import annotations

import polars as pl

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
