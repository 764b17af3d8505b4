"""How late memory.stat is: the kernel counts pages for each CPU first and adds them up in batches."""

from __future__ import annotations

from tare.store.trace import Trace

_BATCH_PAGES = 64
"""MEMCG_CHARGE_BATCH of include/linux/memcontrol.h."""
_PAGE_BYTES = 4096


def lag_bytes(trace: Trace) -> float:
    """Bytes by which a figure of memory.stat may be off when it is read.

    Reading adds up what the CPUs hold back only once that is more than a batch for each of them (mm/memcontrol.c,
    memcg_vmstats_needs_flush); else it is left to a worker that comes every two seconds.
    """
    return float(_BATCH_PAGES * _PAGE_BYTES * trace.cpus)
