"""What mpstat, sar, iostat and pidstat share: how sysstat divides CPU time and treats counters that fall."""

from __future__ import annotations

import polars as pl

from tare.analyze.views.samples import before, grown, risen

SOURCE = "sysstat/sysstat"
INTERVAL = f"{SOURCE} rd_stats.c get_per_cpu_interval"
_WHOLE = ("user_ticks", "nice_ticks", "system_ticks", "iowait_ticks", "irq_ticks", "softirq_ticks", "steal_ticks")


def cpu_interval() -> pl.Expr:
    """Ticks that passed for a CPU: the growth of its eight fields, guest time being within user and nice.

    An idle counter that fell means a CPU that came back and counts from 0. Where guest time grew faster than the
    user time that holds it, the difference is added.
    """
    idle = pl.when(grown("idle_ticks") < 0).then(pl.col("idle_ticks")).otherwise(grown("idle_ticks"))
    fields = [risen(column) for column in _WHOLE]
    return pl.sum_horizontal(
        *fields, idle, _ahead("user", "guest"), _ahead("nice", "guest_nice"), ignore_nulls=False
    )


def without_guest(field: str, guest: str) -> pl.Expr:
    """Growth of user (nice) time without the guest time in it, not below 0."""
    return (grown(f"{field}_ticks") - grown(f"{guest}_ticks")).clip(lower_bound=0)


def _ahead(field: str, guest: str) -> pl.Expr:
    behind = (grown(f"{guest}_ticks") - grown(f"{field}_ticks")).clip(lower_bound=0)
    return pl.when(pl.col(f"{field}_ticks") >= before(f"{field}_ticks")).then(behind).otherwise(0)
