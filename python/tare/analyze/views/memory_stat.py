"""How late memory.stat is: the kernel counts pages for each CPU first and adds them up in batches."""

from __future__ import annotations

import polars as pl

from tare.store.trace import Trace

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
