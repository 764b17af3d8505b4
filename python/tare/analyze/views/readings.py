"""Readings from the trace's tables: `subject`, `series`, `at_ns` (middle of the reading's window) and counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from tare.analyze.views.formulas import whole
from tare.store.trace import Trace

NO_READINGS = pl.DataFrame(schema={"subject": pl.String, "series": pl.Int64, "at_ns": pl.Int64})

DOCKER_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq")
CPU_FIELDS = (*DOCKER_FIELDS, "steal", "guest", "guest_nice")


def _middle(start: str, end: str) -> pl.Expr:
    return ((pl.col(start) + pl.col(end)) // 2).alias("at_ns")


def _keys(subject: pl.Expr | str = "name") -> list[pl.Expr]:
    who = pl.col(subject) if isinstance(subject, str) else subject
    return [who.alias("subject"), pl.col("target").cast(pl.Int64).alias("series")]


def _sorted(readings: pl.DataFrame) -> pl.DataFrame:
    """Leave out readings without a time, which only damaged tables have."""
    return readings.drop_nulls("at_ns").sort("series", "at_ns")


def host_cpu(trace: Trace) -> pl.DataFrame:
    """Ticks of each CPU; subject `all` is their sum, as in mpstat and sar (mpstat.c, rd_stats.c)."""
    table = trace.table("cpu")
    if table is None:
        return NO_READINGS
    ticks = [f"{field}_ticks" for field in CPU_FIELDS]
    one_by_one = table.filter(pl.col("name") != "all")
    single = one_by_one.select(*_keys(), "tick", _middle("t0_ns", "t1_ns"), *ticks)
    whole = single.group_by("tick").agg(pl.col("at_ns").first(), pl.col(ticks).sum())
    summed = whole.select(
        pl.lit("all").alias("subject"), pl.lit(-1, pl.Int64).alias("series"), "tick", "at_ns", *ticks
    )
    return _sorted(pl.concat([summed, single]).drop("tick"))


def cgroup_cpu(trace: Trace) -> pl.DataFrame:
    """CPU time of control groups with docker's divisor `system_ticks`, the sum of seven fields of /proc/stat."""
    table, host = trace.table("cgroup"), trace.table("cpu")
    if table is None:
        return NO_READINGS
    groups = table.filter(pl.col("usage_ns").is_not_null()).select(
        *_keys(), "tick", _middle("usage_t0_ns", "usage_t1_ns"), "usage_ns"
    )
    whole = pl.DataFrame(schema={"tick": pl.Int64, "system_ticks": pl.Int64})
    if host is not None:
        whole = host.filter(pl.col("name") == "all").select(
            "tick", pl.sum_horizontal([f"{field}_ticks" for field in DOCKER_FIELDS]).alias("system_ticks")
        )
        # Only ticks that read both, as the host may be sampled less often.
        groups = groups.join(whole, on="tick", how="inner")
    else:
        groups = groups.join(whole, on="tick", how="left")
    return _sorted(
        groups.drop("tick").with_columns(pl.lit(trace.cpus).alias("cpus"), pl.lit(trace.user_hz).alias("user_hz"))
    )


def cgroup_memory(trace: Trace) -> pl.DataFrame:
    """Memory of control groups with page cache and limit (the machine's memory if there is none).

    Limits are read once a second; before the first reading in a cut trace, the next one applies.
    """
    table, host = trace.table("cgroup"), trace.table("memory")
    if table is None:
        return NO_READINGS
    total = None if host is None else host["total_bytes"].drop_nulls().first()
    limit = pl.min_horizontal("memory_limit_bytes", pl.lit(total, pl.Int64))
    read = pl.when(pl.col("limit_t0_ns").is_not_null()).then(limit)
    return _sorted(
        table.sort("target", "tick")
        .with_columns(read.forward_fill().backward_fill().over("target").alias("limit_bytes"))
        .filter(pl.col("memory_bytes").is_not_null() & pl.col("inactive_file_bytes").is_not_null())
        .select(
            *_keys(),
            _middle("memory_t0_ns", "memory_t1_ns"),
            "memory_bytes",
            "inactive_file_bytes",
            "cache_bytes",
            "anon_bytes",
            "limit_bytes",
        )
    )


def cgroup_io(trace: Trace) -> pl.DataFrame:
    """Bytes in the block I/O files (throttle or io.stat, and BFQ's); null while a file is empty."""
    table = trace.table("cgroup")
    if table is None:
        return NO_READINGS
    asked = pl.col("io_t0_ns").is_not_null() | pl.col("bfq_t0_ns").is_not_null()
    at = pl.coalesce(
        (pl.col("io_t0_ns") + pl.col("io_t1_ns")) // 2, (pl.col("bfq_t0_ns") + pl.col("bfq_t1_ns")) // 2
    )
    files = ("read_bytes", "written_bytes", "bfq_read_bytes", "bfq_written_bytes")
    return _sorted(table.filter(asked).select(*_keys(), at.alias("at_ns"), *files))


def cgroup_block(trace: Trace) -> pl.DataFrame:
    """Bytes of block requests issued, counted by the probe's tracing program."""
    table = trace.table("cgroup")
    if table is None:
        return NO_READINGS
    counted = table.filter(pl.col("block_at_ns").is_not_null() & pl.col("block_read_bytes").is_not_null())
    return _sorted(
        counted.select(*_keys(), pl.col("block_at_ns").alias("at_ns"), "block_read_bytes", "block_written_bytes")
    )


def processes(trace: Trace) -> pl.DataFrame:
    """CPU time, memory and page faults of processes, from /proc/PID/stat."""
    columns = ("user_ticks", "system_ticks", "minor_faults", "major_faults", "virtual_bytes", "resident_bytes")
    return _of_processes(trace, "stat", columns)


def process_io(trace: Trace) -> pl.DataFrame:
    """Bytes that processes caused to be read and written, from /proc/PID/io."""
    return _of_processes(trace, "io", ("read_bytes", "written_bytes", "cancelled_bytes"))


def _of_processes(trace: Trace, window: str, columns: tuple[str, ...]) -> pl.DataFrame:
    table = trace.table("process")
    if table is None:
        return NO_READINGS
    who = pl.format("{} pid {}", "name", "pid")
    asked = table.filter(pl.col(f"{window}_t0_ns").is_not_null() & pl.col(columns[0]).is_not_null())
    at = _middle(f"{window}_t0_ns", f"{window}_t1_ns")
    return _sorted(asked.select(*_keys(who), at, *columns, pl.lit(trace.user_hz).alias("user_hz")))


def disks(trace: Trace) -> pl.DataFrame:
    """Counters of /proc/diskstats, one series for each device, without partitions."""
    table = trace.table("disk")
    if table is None:
        return NO_READINGS
    kept = [name for name in table.columns if name not in ("tick", "target", "name", "t0_ns", "t1_ns")]
    devices = table.filter(pl.col("name").is_in(list(whole(table["name"].unique().to_list()))))
    return _sorted(devices.select(*_keys(), _middle("t0_ns", "t1_ns"), *kept))


def host_memory(trace: Trace) -> pl.DataFrame:
    """Memory of the host from /proc/meminfo."""
    table = trace.table("memory")
    if table is None:
        return NO_READINGS
    columns = ("total_bytes", "free_bytes", "available_bytes", "buffers_bytes", "cached_bytes", "slab_bytes")
    asked = table.filter(pl.col("total_bytes").is_not_null())
    return _sorted(asked.select(*_keys(), _middle("meminfo_t0_ns", "meminfo_t1_ns"), *columns))


def interfaces(trace: Trace) -> pl.DataFrame:
    """Interfaces of the host's network namespace, by name."""
    table = trace.table("interface")
    if table is None:
        return NO_READINGS
    own = table.filter(pl.col("name").str.starts_with("host/"))
    who = pl.col("name").str.strip_prefix("host/")
    return _sorted(own.select(*_keys(who), _middle("t0_ns", "t1_ns"), "rx_bytes", "tx_bytes"))


def sandboxes(trace: Trace) -> pl.DataFrame:
    """Sums over the interfaces of each other network namespace, without loopback."""
    table = trace.table("interface")
    if table is None:
        return NO_READINGS
    parts = pl.col("name").str.splitn("/", 2).struct
    others = table.with_columns(parts.field("field_0").alias("space"), parts.field("field_1").alias("device"))
    others = others.filter((pl.col("space") != "host") & (pl.col("device") != "lo"))
    summed = others.group_by("space", "tick").agg(
        pl.col("target").min(), _middle("t0_ns", "t1_ns").first(), pl.col("rx_bytes", "tx_bytes").sum()
    )
    return _sorted(summed.select(*_keys("space"), "at_ns", "rx_bytes", "tx_bytes"))


READINGS: Mapping[str, Callable[[Trace], pl.DataFrame]] = {
    "cgroup cpu": cgroup_cpu,
    "cgroup memory": cgroup_memory,
    "cgroup io": cgroup_io,
    "cgroup block": cgroup_block,
    "host cpu": host_cpu,
    "host memory": host_memory,
    "disks": disks,
    "processes": processes,
    "process io": process_io,
    "interfaces": interfaces,
    "sandboxes": sandboxes,
}


def every(readings: pl.DataFrame, interval_s: float) -> pl.DataFrame:
    """Select the readings that a tool would have made: those nearest to each multiple of the interval."""
    if readings.is_empty():
        return readings
    interval_ns = round(interval_s * 1e9)
    since = pl.col("at_ns") - pl.col("at_ns").min()
    turn = ((since + interval_ns // 2) // interval_ns).alias("turn")
    off = (since - turn * interval_ns).abs().alias("off")
    marked = readings.with_columns(turn, off)
    nearest = marked.sort("series", "turn", "off").unique(["series", "turn"], keep="first", maintain_order=True)
    return nearest.sort("series", "at_ns").drop("turn", "off")
