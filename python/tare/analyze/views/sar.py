"""sar: CPU, memory, disks and interfaces of the host (-u, -r, -d, -n DEV)."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import at_readings, hundredths, over_intervals, risen
from tare.analyze.views.model import Kind, Measure, Quantity, View
from tare.analyze.views.sysstat import (
    INTERVAL,
    SOURCE,
    idle_ticks,
    iowait_ticks,
    per_second,
    share_of,
    share_of_cpus,
)

_PRINTED = {
    "user": risen("user_ticks"),
    "nice": risen("nice_ticks"),
    "system": risen("system_ticks") + risen("irq_ticks") + risen("softirq_ticks"),
    "iowait": iowait_ticks(),
    "steal": risen("steal_ticks"),
    "idle": idle_ticks(),
}


def share(readings: pl.DataFrame, field: str) -> pl.DataFrame:
    """Like mpstat, but guests count as user time and interrupts as system time."""
    return share_of(readings, _PRINTED[field], idle=field == "idle")


def memory_used_kib(readings: pl.DataFrame) -> pl.DataFrame:
    """Memory that is not free, buffers, page cache or slab, as in 11.7 to 12.7.7."""
    unused = pl.sum_horizontal("free_bytes", "buffers_bytes", "cached_bytes", "slab_bytes", ignore_nulls=False)
    return at_readings(readings, (pl.col("total_bytes") - unused).clip(lower_bound=0) / 1024)


def memory_used_kib_12_7_8(readings: pl.DataFrame) -> pl.DataFrame:
    """Memory that is not available, as in versions since 12.7.8."""
    return at_readings(readings, (pl.col("total_bytes") - pl.col("available_bytes")) / 1024)


def disk_kib(readings: pl.DataFrame, sectors: str) -> pl.DataFrame:
    """KiB per second: half of the sectors of 512 bytes."""
    return over_intervals(readings, risen(sectors) / 2 / hundredths())


def interface_kib(readings: pl.DataFrame, counter: str) -> pl.DataFrame:
    """KiB per second."""
    return over_intervals(readings, risen(counter) / 1024 / hundredths())


_CPU = tuple(
    share_of_cpus(
        name=field,
        shown=f"%{field}",
        formula=partial(share, field=field),
        says=says,
        cites=f"{SOURCE} json_stats.c json_print_cpu_stats; {INTERVAL}",
    )
    for field, says in {
        "user": "Δuser / Σ * 100, guests included; Σ as mpstat's, steal included",
        "nice": "Δnice / Σ * 100",
        "system": "Δ(system + irq + softirq) / Σ * 100",
        "iowait": "Δiowait / Σ * 100",
        "steal": "Δsteal / Σ * 100",
        "idle": "Δidle / Σ * 100",
    }.items()
)
_used_memory = partial(
    Quantity,
    unit="KiB",
    measure=Measure.HOST_MEMORY,
    kind=Kind.GAUGE,
    readings="host memory",
    step=1.0,
)
_MEMORY = (
    _used_memory(
        name="memory_used_kib",
        shown="kbmemused until 12.7.7",
        formula=memory_used_kib,
        says="MemTotal - MemFree - Buffers - Cached - Slab",
        cites=f"{SOURCE} 12.6.1 json_stats.c json_print_memory_stats",
    ),
    _used_memory(
        name="memory_used_kib_12_7_8",
        shown="kbmemused since 12.7.8",
        formula=memory_used_kib_12_7_8,
        says="MemTotal - MemAvailable",
        cites=f"{SOURCE} pr_stats.c stub_print_memory_stats (commit 6f34da35)",
    ),
)
_DISKS = tuple(
    per_second(
        name=name,
        shown=shown,
        unit="KiB/s",
        measure=Measure.HOST_DISK,
        readings="disks",
        formula=partial(disk_kib, sectors=sectors),
        says=f"Δ{sectors} / 2 / interval",
        cites=f"{SOURCE} json_stats.c json_print_disk_stats",
        one=0.5,
    )
    for name, shown, sectors in (("disk_rkb", "rkB/s", "read_sectors"), ("disk_wkb", "wkB/s", "written_sectors"))
)
_NETWORK = tuple(
    per_second(
        name=name,
        shown=shown,
        unit="KiB/s",
        measure=Measure.HOST_NETWORK,
        readings="interfaces",
        formula=partial(interface_kib, counter=counter),
        says=f"Δ{counter} / 1024 / interval",
        cites=f"{SOURCE} json_stats.c json_print_net_dev_stats",
    )
    for name, shown, counter in (("rxkb", "rxkB/s", "rx_bytes"), ("txkb", "txkB/s", "tx_bytes"))
)

SAR = View(
    tool="sar",
    title="sar",
    cadence="Any whole number of seconds; from cron usually 10 min.",
    quantities=(*_CPU, *_MEMORY, *_DISKS, *_NETWORK),
    blind_to=(
        "containers of every kind: it knows the host alone",
        "interfaces inside other network namespaces: of a container only its veth's outer end",
        "memory by owner; its used memory changed its meaning with 12.7.8",
    ),
)
