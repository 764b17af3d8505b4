"""sysstat's tools as tables: mpstat, sar, pidstat and iostat, with its division of CPU time and its clock."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import before, grown, hundredths, risen
from tare.analyze.views.model import Grain, Kind, Measure, Quantity, View

_SOURCE = "sysstat/sysstat"
_INTERVAL = f"{_SOURCE} rd_stats.c get_per_cpu_interval"
_OF_ONE_CPU = partial(Grain, column="user_ticks", worth=lambda trace: 100 / trace.user_hz)
"""Ticks of user time; those of one second are 100 % of one CPU. The mean over all CPUs is finer by their number."""
_RISING = ("user_ticks", "nice_ticks", "system_ticks", "irq_ticks", "softirq_ticks", "steal_ticks")
_WHOLE_SECONDS = "Any whole number of seconds"


def _idle_ticks() -> pl.Expr:
    """Growth of idle time; a counter that fell belongs to a CPU that came back online and counts from 0."""
    passed = grown("idle_ticks")
    return pl.when(passed < 0).then("idle_ticks").otherwise(passed)


def _iowait_ticks() -> pl.Expr:
    """Growth of iowait. If it fell: 0 if idle time grew, else the count of a CPU that came back online."""
    passed = grown("iowait_ticks")
    fell = passed < 0
    return pl.when(fell & (grown("idle_ticks") > 0)).then(0).when(fell).then("iowait_ticks").otherwise(passed)


def _cpu_interval() -> pl.Expr:
    """Ticks that passed for a CPU: growth of its eight fields, where user and nice include guest time.

    If guest time grew faster than the user time that includes it, the difference is added.
    """
    fields = [risen(column) for column in _RISING]
    guests = (_ahead("user", "guest"), _ahead("nice", "guest_nice"))
    return pl.sum_horizontal(*fields, _iowait_ticks(), _idle_ticks(), *guests, ignore_nulls=False)


def _ahead(field: str, guest: str) -> pl.Expr:
    behind = (grown(f"{guest}_ticks") - grown(f"{field}_ticks")).clip(lower_bound=0)
    return pl.when(pl.col(f"{field}_ticks") >= before(f"{field}_ticks")).then(behind).otherwise(0)


def _without_guest(field: str, guest: str) -> pl.Expr:
    """Growth of user (or nice) time without its guest time, not below 0."""
    return (grown(f"{field}_ticks") - grown(f"{guest}_ticks")).clip(lower_bound=0)


def _share(ticks: pl.Expr, still: float = 0.0) -> pl.Expr:
    """Ticks in percent of the growth of all fields, including steal; `still`: of a CPU without ticks, all idle."""
    whole = _cpu_interval()
    return pl.when(whole > 0).then(ticks / whole * 100).when(whole == 0).then(still)


_of_cpus = partial(
    Quantity, unit="%", measure=Measure.HOST_CPU, kind=Kind.RATE, readings="host cpu", step=0.01,
    grain=_OF_ONE_CPU("cpu"), weight=_cpu_interval(),
    clock_s=lambda trace: 8 / trace.user_hz,  # each of eight fields is rounded down to a tick
)  # fmt: skip
_per_second = partial(Quantity, kind=Kind.RATE, step=0.01, clock_s=lambda _: 0.01)
"""Makes a quantity that is divided by /proc/uptime in hundredths of a second, and printed with two decimals."""

_MPSTAT_LINE = f"{_SOURCE} mpstat.c write_json_cpu_stats; {_INTERVAL}"
MPSTAT = View(
    tool="mpstat",
    title="mpstat",
    cadence=f"{_WHOLE_SECONDS}, by an alarm that does not drift.",
    quantities=tuple(
        _of_cpus(name, f"%{name}", value, says, _MPSTAT_LINE)
        for name, value, says in (
            ("usr", _share(_without_guest("user", "guest")), ("Δ(user - guest) / Σ * 100, where Σ is the growth of "
             "user, nice, system, idle, iowait, irq, softirq and steal")),
            ("nice", _share(_without_guest("nice", "guest_nice")), "Δ(nice - guest_nice) / Σ * 100"),
            ("sys", _share(risen("system_ticks")), "Δsystem / Σ * 100"),
            ("iowait", _share(_iowait_ticks()), "Δiowait / Σ * 100"),
            ("irq", _share(risen("irq_ticks")), "Δirq / Σ * 100"),
            ("soft", _share(risen("softirq_ticks")), "Δsoftirq / Σ * 100"),
            ("steal", _share(risen("steal_ticks")), "Δsteal / Σ * 100"),
            ("guest", _share(risen("guest_ticks")), "Δguest / Σ * 100"),
            ("gnice", _share(risen("guest_nice_ticks")), "Δguest_nice / Σ * 100"),
            ("idle", _share(_idle_ticks(), 100.0), "Δidle / Σ * 100"),
        )
    ),
    blind_to=(
        "containers: 100 % is the whole host (CPU all) or one CPU, and it is unknown whose time it was",
        "how long something waited for a CPU",
        "memory, disks, network",
    ),
)  # fmt: skip

_SYSTEM = risen("system_ticks") + risen("irq_ticks") + risen("softirq_ticks")
_UNUSED = pl.sum_horizontal("free_bytes", "buffers_bytes", "cached_bytes", "slab_bytes", ignore_nulls=False)
_TOTAL = pl.col("total_bytes")
_SAR_CPU, _SAR = f"{_SOURCE} json_stats.c json_print_cpu_stats; {_INTERVAL}", f"{_SOURCE} json_stats.c json_print"
_of_memory = partial(
    Quantity, unit="KiB", measure=Measure.HOST_MEMORY, kind=Kind.GAUGE, readings="host memory", step=1.0
)
SAR = View(
    tool="sar",
    title="sar",
    cadence=f"{_WHOLE_SECONDS}; from cron usually 10 min.",
    quantities=(
        *(_of_cpus(name, f"%{name}", value, says, _SAR_CPU)
          for name, value, says in (
              ("user", _share(risen("user_ticks")),
               "Δuser / Σ * 100, guests included; Σ as mpstat's, steal included"),
              ("nice", _share(risen("nice_ticks")), "Δnice / Σ * 100"),
              ("system", _share(_SYSTEM), "Δ(system + irq + softirq) / Σ * 100"),
              ("iowait", _share(_iowait_ticks()), "Δiowait / Σ * 100"),
              ("steal", _share(risen("steal_ticks")), "Δsteal / Σ * 100"),
              ("idle", _share(_idle_ticks(), 100.0), "Δidle / Σ * 100"),
          )),
        _of_memory("memory_used_kib", "kbmemused until 12.7.7", (_TOTAL - _UNUSED).clip(lower_bound=0) / 1024,
                   "MemTotal - MemFree - Buffers - Cached - Slab",
                   f"{_SOURCE} 12.6.1 json_stats.c json_print_memory_stats"),
        _of_memory("memory_used_kib_12_7_8", "kbmemused since 12.7.8", (_TOTAL - pl.col("available_bytes")) / 1024,
                   "MemTotal - MemAvailable", f"{_SOURCE} pr_stats.c stub_print_memory_stats (commit 6f34da35)"),
        *(_per_second(name, shown, risen(sectors) / 2 / hundredths(), f"Δ{sectors} / 2 / interval",
                      f"{_SAR}_disk_stats", unit="KiB/s", measure=Measure.HOST_DISK, readings="disks", one=0.5)
          for name, shown, sectors in (
              ("disk_rkb", "rkB/s", "read_sectors"), ("disk_wkb", "wkB/s", "written_sectors"),
          )),
        *(_per_second(name, shown, risen(counter) / 1024 / hundredths(), f"Δ{counter} / 1024 / interval",
                      f"{_SAR}_net_dev_stats", unit="KiB/s", measure=Measure.HOST_NETWORK, readings="interfaces")
          for name, shown, counter in (("rxkb", "rxkB/s", "rx_bytes"), ("txkb", "txkB/s", "tx_bytes"))),
    ),
    blind_to=(
        "containers of every kind: it knows the host alone",
        "interfaces inside other network namespaces: of a container only its veth's outer end",
        "memory by owner; its used memory changed its meaning with 12.7.8",
    ),
)  # fmt: skip

_PID = f"{_SOURCE} pidstat.c"
_USER, _SYS = grown("user_ticks"), grown("system_ticks")
PIDSTAT = View(
    tool="pidstat",
    title="pidstat",
    cadence=f"{_WHOLE_SECONDS}. It opens files of every process again each time.",
    quantities=(
        # pidstat also subtracts guest time from %usr, which the trace lacks; only hypervisors have any.
        *(_per_second(name, shown, ticks / pl.col("user_hz") / hundredths() * 100, says,
                      f"{_PID} write_plain_pid_task_cpu_data", unit="%", measure=Measure.PROCESS_CPU,
                      readings="processes", grain=_OF_ONE_CPU("process"), cores=lambda _: 1.0)
          for name, shown, ticks, says in (
              ("cpu_percent", "%CPU", _USER + _SYS, "Δ(utime + stime) / interval * 100; 100 % is one CPU"),
              ("usr_percent", "%usr", risen("user_ticks"), "Δ(utime - guest_time) / interval * 100"),
              ("system_percent", "%system", _SYS, "Δstime / interval * 100"),
          )),
        Quantity("resident_kib", "RSS", pl.col("resident_bytes") / 1024, "rss of /proc/PID/stat * page size",
                 f"{_PID} read_proc_pid_stat", unit="KiB", measure=Measure.PROCESS_MEMORY, kind=Kind.GAUGE,
                 readings="processes", step=1.0, paged=1 / 1024),
        *(_per_second(counter, shown, grown(counter) / hundredths(), f"Δ{field} / interval",
                      f"{_PID} write_plain_pid_task_memory_data", unit="1/s", measure=Measure.PROCESS_MEMORY,
                      readings="processes", one=1.0)
          for counter, shown, field in (
              ("minor_faults", "minflt/s", "minflt"), ("major_faults", "majflt/s", "majflt"),
          )),
        *(_per_second(name, shown, grown(counter) / 1024 / hundredths(),
                      f"Δ{field} of /proc/PID/io / 1024 / interval", f"{_PID} write_plain_pid_io_data",
                      unit="KiB/s", measure=Measure.PROCESS_DISK, readings="process io")
          for name, shown, counter, field in (
              ("read_kib", "kB_rd/s", "read_bytes", "read_bytes"),
              ("written_kib", "kB_wr/s", "written_bytes", "write_bytes"),
              ("cancelled_kib", "kB_ccwr/s", "cancelled_bytes", "cancelled_write_bytes"),
          )),
    ),
    blind_to=(
        "processes that start and end between two samples, and those children of -p PID that were not named",
        "containers as such: a container's processes have to be known by their pids in the host's namespace",
        ("when a write reached the disk: write_bytes counts when a page is dirtied, and one thrown away before "
         "it was written is taken back only in kB_ccwr/s"),
        "reads that the page cache served",
    ),
)  # fmt: skip

_LINE = f"{_SOURCE} iostat.c write_ext_stat"
_of_disk = partial(_per_second, measure=Measure.HOST_DISK, readings="disks", cites=_LINE)
_requests = partial(_of_disk, unit="1/s", one=1.0)


def _mean_time(time: str, count: str) -> pl.Expr:
    """Mean time of completed requests; 0 without any."""
    done = grown(count)
    return pl.when(done > 0).then(grown(time) / done).when(done.is_not_null()).then(0.0)


IOSTAT = View(
    tool="iostat",
    title="iostat -x",
    cadence=f"{_WHOLE_SECONDS}; its first report is the average since boot unless -y.",
    quantities=(
        *(_requests(counter, shown, risen(counter) / hundredths(), f"Δ{counter} / interval")
          for counter, shown in (("reads", "r/s"), ("writes", "w/s"), ("flushes", "f/s"))),
        *(_of_disk(name, shown, risen(sectors) / 2 / hundredths(), "Δsectors / 2 / interval", unit="KiB/s", one=0.5)
          for name, shown, sectors in (
              ("read_kib", "rkB/s", "read_sectors"), ("written_kib", "wkB/s", "written_sectors"),
          )),
        *(_requests(f"{way}s_merged", shown, risen(f"{way}s_merged") / hundredths(), f"Δmerged {way}s / interval")
          for way, shown in (("read", "rrqm/s"), ("write", "wrqm/s"))),
        *(Quantity(f"{way}_await", f"{way[0]}_await", _mean_time(f"{way}_ms", count),
                   f"Δ{way}_ms / Δ{count}, 0 where none completed", _LINE, unit="ms", measure=Measure.HOST_DISK,
                   kind=Kind.RATE, readings="disks", step=0.01, weighted_by=count)
          for way, count in (("read", "reads"), ("write", "writes"), ("flush", "flushes"))),
        _of_disk("queue", "aqu-sz", risen("weighted_ms") / 1000 / hundredths(), "Δtime of all requests / interval",
                 unit="requests", grain=Grain("disk", "weighted_ms", lambda _: 1 / 1000)),
        _of_disk("util", "%util", risen("busy_ms") / 1000 / hundredths() * 100,
                 "Δtime with any request under way / interval * 100", unit="%",
                 cites=f"{_LINE}; rd_stats.c compute_ext_disk_stats",
                 grain=Grain("disk", "busy_ms", lambda _: 100 / 1000)),
    ),
    blind_to=(
        "containers: a device's requests are everybody's",
        "who waits: %util is about time, and a device that serves many requests at once is not full at 100 %",
        "the page cache: buffered writes show when they are written back, and reads that it served never",
        "devices without counters of their own: overlay2 is a file system, its requests are the host disk's",
    ),
)  # fmt: skip
