"""What the dashboard of tare-probe shows: sections of panels, each with its expressions in PromQL."""

from __future__ import annotations

from dataclasses import dataclass

WINDOW = "$__rate_interval"
NAMED = '{name=~"$name"}'


@dataclass(frozen=True)
class Line:
    """One expression and how its series are called."""

    expression: str
    legend: str = "{{name}}"


@dataclass(frozen=True)
class Shown:
    """One panel. `unit` is Grafana's name of it; `stacked` where the lines are parts of a whole."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    meaning: str
    stacked: bool = False


@dataclass(frozen=True)
class Section:
    """A row of panels."""

    title: str
    panels: tuple[Shown, ...]


def rate(counter: str, labels: str = "") -> str:
    """Growth of a counter a second."""
    return f"rate({counter}{labels}[{WINDOW}])"


def block(kind: str) -> str:
    """Block I/O of control groups: what the tracing program counted, else what the group's own files say."""
    return f"{rate(f'tare_cgroup_block_{kind}_total', NAMED)} or {rate(f'tare_cgroup_{kind}_total', NAMED)}"


def cpu(mode: str) -> Line:
    """Share of all CPUs' time that went into one mode."""
    return Line(rate(f"tare_cpu_{mode}_seconds_total", '{name!="all"}'), mode + " {{name}}")


CONTAINERS = Section(
    "Control groups",
    (
        Shown(
            "CPU", "short", (Line(rate("tare_cgroup_usage_seconds_total", NAMED)),), "CPUs in use: 1 is one CPU."
        ),
        Shown(
            "Time throttled",
            "percentunit",
            (Line(rate("tare_cgroup_throttled_seconds_total", NAMED)),),
            "Throttled time a second, added up over CPUs. Groups without a quota stay at 0.",
        ),
        Shown(
            "Memory without inactive page cache",
            "bytes",
            (Line(f"tare_cgroup_memory_bytes{NAMED} - tare_cgroup_inactive_file_bytes{NAMED}"),),
            "What docker stats and cAdvisor (working set) show, before their roundings.",
        ),
        Shown("Memory, page cache and all", "bytes", (Line(f"tare_cgroup_memory_bytes{NAMED}"),), "As accounted."),
        Shown(
            "Block reads",
            "Bps",
            (Line(block("read_bytes")),),
            "Counted as requests end, where a tracing program is allowed, else from the group's files. A group "
            "that is missing has no known value, which is not 0.",
        ),
        Shown("Block writes", "Bps", (Line(block("written_bytes")),), "As for reads."),
        Shown("Processes and threads", "short", (Line(f"tare_cgroup_pids{NAMED}"),), "Tasks in the group."),
        Shown(
            "Faults that read a page",
            "ops",
            (Line(rate("tare_cgroup_major_faults_total", NAMED)),),
            "Major page faults.",
        ),
    ),
)
HOST = Section(
    "Host",
    (
        Shown(
            "CPU by mode",
            "percentunit",
            tuple(cpu(mode) for mode in ("user", "nice", "system", "iowait", "irq", "softirq", "steal")),
            "Each CPU's time. Steal is what the hypervisor gave to others.",
            stacked=True,
        ),
        Shown(
            "Pressure",
            "percentunit",
            tuple(
                Line(rate(f"tare_pressure_{what}_some_seconds_total"), f"{what}, some")
                for what in ("cpu", "memory", "io")
            ),
            "Share of time in which some task waited for it (PSI).",
        ),
        Shown(
            "Memory",
            "bytes",
            tuple(
                Line(f"tare_memory_{what}_bytes", what)
                for what in ("total", "available", "cached", "anon", "dirty")
            ),
            "From /proc/meminfo.",
        ),
        Shown(
            "Disk traffic",
            "Bps",
            (
                Line(rate("tare_disk_read_bytes_total"), "{{name}} read"),
                Line(rate("tare_disk_written_bytes_total"), "{{name}} written"),
            ),
            "By device, partitions too.",
        ),
        Shown("Disk busy", "percentunit", (Line(rate("tare_disk_busy_seconds_total")),), "iostat's %util."),
        Shown(
            "Network traffic",
            "Bps",
            (
                Line(rate("tare_interface_rx_bytes_total"), "{{name}} in"),
                Line(rate("tare_interface_tx_bytes_total"), "{{name}} out"),
            ),
            "By interface of the host and of the namespaces that were named.",
        ),
        Shown(
            "Context switches and interrupts",
            "ops",
            (
                Line(rate("tare_system_context_switches_total"), "context switches"),
                Line(rate("tare_system_interrupts_total"), "interrupts"),
            ),
            "Of the whole machine.",
        ),
        Shown(
            "Tasks",
            "short",
            (Line("tare_system_running", "running"), Line("tare_system_blocked", "blocked")),
            "Runnable, and waiting for a disk.",
        ),
    ),
)
PROCESSES = Section(
    "Processes",
    (
        Shown(
            "CPU of a tree",
            "short",
            (Line(f"sum by (name) ({rate('tare_process_cpu_seconds_total', NAMED)})"),),
            "CPUs in use by a process and its descendants.",
        ),
        Shown(
            "Resident memory of a tree",
            "bytes",
            (Line(f"sum by (name) (tare_process_resident_bytes{NAMED})"),),
            "Pages that are shared count once for each process.",
        ),
        Shown(
            "Reads and writes of a tree",
            "Bps",
            (
                Line(f"sum by (name) ({rate('tare_process_read_bytes_total', NAMED)})", "{{name}} read"),
                Line(f"sum by (name) ({rate('tare_process_written_bytes_total', NAMED)})", "{{name}} written"),
            ),
            "Bytes from and to disks, by /proc/PID/io; writes count when the page is dirtied.",
        ),
        Shown("Threads of a tree", "short", (Line(f"sum by (name) (tare_process_threads{NAMED})"),), "Threads."),
    ),
)
PROBE = Section(
    "tare-probe itself",
    (
        Shown(
            "CPU", "percentunit", (Line(rate("tare_probe_probe_cpu_seconds_total"), "CPU"),), "Share of one CPU."
        ),
        Shown(
            "Resident memory", "bytes", (Line("tare_probe_resident_bytes", "resident"),), "Of the whole program."
        ),
        Shown(
            "Readings lost",
            "short",
            (
                Line("sum_over_time(tare_probe_missed_ticks[5m])", "ticks missed in 5 min, of those scraped"),
                Line("tare_probe_dropped_rows_total", "rows dropped"),
            ),
            "Anything but 0 means that the machine had no time for the probe.",
        ),
        Shown(
            "Age of the newest reading",
            "s",
            (Line("time() - timestamp(tare_probe_realtime_seconds)", "age"),),
            "Time since the kernel was read, for what was scraped last.",
        ),
    ),
)
SECTIONS = (CONTAINERS, HOST, PROCESSES, PROBE)
