"""pidstat: CPU, memory and disk I/O of processes (-u, -r, -d)."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import at_readings, grown, hundredths, over_intervals, risen
from tare.analyze.views.model import Kind, Measure, Quantity, View
from tare.analyze.views.sysstat import OF_ONE_CPU, SOURCE, per_second


def cpu_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """Δ(utime + stime) / interval in percent of one CPU."""
    ticks = grown("user_ticks") + grown("system_ticks")
    return over_intervals(readings, ticks / pl.col("user_hz") / hundredths() * 100)


def usr_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """Δutime / interval. pidstat also subtracts guest time, which the trace lacks; only hypervisors have any."""
    return over_intervals(readings, risen("user_ticks") / pl.col("user_hz") / hundredths() * 100)


def system_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """Δstime / interval."""
    return over_intervals(readings, grown("system_ticks") / pl.col("user_hz") / hundredths() * 100)


def resident_kib(readings: pl.DataFrame) -> pl.DataFrame:
    """Resident memory in KiB."""
    return at_readings(readings, pl.col("resident_bytes") / 1024)


def faults_per_s(readings: pl.DataFrame, counter: str) -> pl.DataFrame:
    """Page faults per second."""
    return over_intervals(readings, grown(counter) / hundredths())


def disk_kib(readings: pl.DataFrame, counter: str) -> pl.DataFrame:
    """KiB per second, from bytes in /proc/PID/io."""
    return over_intervals(readings, grown(counter) / 1024 / hundredths())


_CPU = tuple(
    per_second(
        name=name,
        shown=shown,
        unit="%",
        measure=Measure.PROCESS_CPU,
        readings="processes",
        formula=formula,
        says=says,
        cites=f"{SOURCE} pidstat.c write_plain_pid_task_cpu_data",
        grain=OF_ONE_CPU("process"),
        cores=lambda _: 1.0,
    )
    for name, shown, formula, says in (
        ("cpu_percent", "%CPU", cpu_percent, "Δ(utime + stime) / interval * 100; 100 % is one CPU"),
        ("usr_percent", "%usr", usr_percent, "Δ(utime - guest_time) / interval * 100"),
        ("system_percent", "%system", system_percent, "Δstime / interval * 100"),
    )
)
_RESIDENT = Quantity(
    name="resident_kib",
    shown="RSS",
    unit="KiB",
    measure=Measure.PROCESS_MEMORY,
    kind=Kind.GAUGE,
    readings="processes",
    formula=resident_kib,
    says="rss of /proc/PID/stat * page size",
    cites=f"{SOURCE} pidstat.c read_proc_pid_stat",
    step=1.0,
    paged=1 / 1024,
)
_FAULTS = tuple(
    per_second(
        name=counter,
        shown=shown,
        unit="1/s",
        measure=Measure.PROCESS_MEMORY,
        readings="processes",
        formula=partial(faults_per_s, counter=counter),
        says=f"Δ{field} / interval",
        cites=f"{SOURCE} pidstat.c write_plain_pid_task_memory_data",
        one=1.0,
    )
    for counter, shown, field in (("minor_faults", "minflt/s", "minflt"), ("major_faults", "majflt/s", "majflt"))
)
_DISK = tuple(
    per_second(
        name=name,
        shown=shown,
        unit="KiB/s",
        measure=Measure.PROCESS_DISK,
        readings="process io",
        formula=partial(disk_kib, counter=counter),
        says=f"Δ{field} of /proc/PID/io / 1024 / interval",
        cites=f"{SOURCE} pidstat.c write_plain_pid_io_data",
    )
    for name, shown, counter, field in (
        ("read_kib", "kB_rd/s", "read_bytes", "read_bytes"),
        ("written_kib", "kB_wr/s", "written_bytes", "write_bytes"),
        ("cancelled_kib", "kB_ccwr/s", "cancelled_bytes", "cancelled_write_bytes"),
    )
)

PIDSTAT = View(
    tool="pidstat",
    title="pidstat",
    cadence="Any whole number of seconds. It opens files of every process again each time.",
    quantities=(*_CPU, _RESIDENT, *_FAULTS, *_DISK),
    blind_to=(
        "processes that start and end between two samples, and those children of -p PID that were not named",
        "containers as such: a container's processes have to be known by their pids in the host's namespace",
        (
            "when a write reached the disk: write_bytes counts when a page is dirtied, and one thrown away before "
            "it was written is taken back only in kB_ccwr/s"
        ),
        "reads that the page cache served",
    ),
)
