"""Common parts of mpstat, sar, iostat and pidstat: sysstat's division of CPU time, and its clock."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import before, grown, over_intervals, risen
from tare.analyze.views.model import Grain, Kind, Measure, Quantity

SOURCE = "sysstat/sysstat"
INTERVAL = f"{SOURCE} rd_stats.c get_per_cpu_interval"
OF_ONE_CPU = partial(Grain, column="user_ticks", worth=lambda trace: 100 / trace.user_hz)
"""Ticks of user time; those of one second are 100 % of one CPU. The mean over all CPUs is finer by their number."""
per_second = partial(Quantity, kind=Kind.RATE, step=0.01, clock_s=lambda _: 0.01)
"""Makes a quantity that is divided by /proc/uptime in hundredths of a second, and printed with two decimals."""
_RISING = ("user_ticks", "nice_ticks", "system_ticks", "irq_ticks", "softirq_ticks", "steal_ticks")


def idle_ticks() -> pl.Expr:
    """Growth of idle time; a counter that fell belongs to a CPU that came back online and counts from 0."""
    passed = grown("idle_ticks")
    return pl.when(passed < 0).then("idle_ticks").otherwise(passed)


def iowait_ticks() -> pl.Expr:
    """Growth of iowait. If it fell: 0 if idle time grew, else the count of a CPU that came back online."""
    passed = grown("iowait_ticks")
    fell = passed < 0
    return pl.when(fell & (grown("idle_ticks") > 0)).then(0).when(fell).then("iowait_ticks").otherwise(passed)


def cpu_interval() -> pl.Expr:
    """Ticks that passed for a CPU: growth of its eight fields, where user and nice include guest time.

    If guest time grew faster than the user time that includes it, the difference is added.
    """
    fields = [risen(column) for column in _RISING]
    guests = (_ahead("user", "guest"), _ahead("nice", "guest_nice"))
    return pl.sum_horizontal(*fields, iowait_ticks(), idle_ticks(), *guests, ignore_nulls=False)


def passed(readings: pl.DataFrame) -> pl.DataFrame:
    """Ticks by which mpstat and sar divide: 100 % of each sample."""
    return over_intervals(readings, cpu_interval())


def share_of(readings: pl.DataFrame, ticks: pl.Expr, *, idle: bool) -> pl.DataFrame:
    """Ticks in percent of the growth of all fields, including steal; a CPU without ticks was idle."""
    whole, still = cpu_interval(), 100.0 if idle else 0.0
    return over_intervals(readings, pl.when(whole > 0).then(ticks / whole * 100).when(whole == 0).then(still))


share_of_cpus = partial(
    Quantity,
    unit="%",
    measure=Measure.HOST_CPU,
    kind=Kind.RATE,
    readings="host cpu",
    step=0.01,
    grain=OF_ONE_CPU("cpu"),
    weight=passed,
    # Each of eight fields is rounded down to a tick.
    clock_s=lambda trace: 8 / trace.user_hz,
)
"""Makes a quantity that `share_of` computes."""


def without_guest(field: str, guest: str) -> pl.Expr:
    """Growth of user (or nice) time without its guest time, not below 0."""
    return (grown(f"{field}_ticks") - grown(f"{guest}_ticks")).clip(lower_bound=0)


def _ahead(field: str, guest: str) -> pl.Expr:
    behind = (grown(f"{guest}_ticks") - grown(f"{field}_ticks")).clip(lower_bound=0)
    return pl.when(pl.col(f"{field}_ticks") >= before(f"{field}_ticks")).then(behind).otherwise(0)
