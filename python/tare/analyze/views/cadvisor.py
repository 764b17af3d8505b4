"""cAdvisor's counters, converted to figures by Prometheus's rate()."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import NS, at_readings, grown, lag_bytes, over_intervals
from tare.analyze.views.model import Grain, Kind, Measure, Quantity, View

METRICS = "google/cadvisor lib/metrics/prometheus.go"
HANDLER = "google/cadvisor lib/container/libcontainer/handler.go"
RATE = "prometheus/prometheus promql/functions.go extrapolatedRate"
INSTANT = "prometheus/prometheus promql/functions.go instantValue"
RANGE_S = 5.0
"""Range of rate(counter[5s]) in seconds. Prometheus has no default; Grafana uses at least four scrapes."""


def rate(readings: pl.DataFrame, counter: str, range_s: float) -> pl.DataFrame:
    """Increase of a counter per second over a range, extrapolated to its borders; evaluated at each scrape.

    A fall counts as a reset. The increase is extrapolated to a border nearer than 1.1 mean gaps, else by half a
    gap, and never further back than where the counter would be 0. Null with fewer than two samples.
    """
    lost = pl.when(grown(counter) < 0).then(pl.col(counter).shift(1).over("series")).otherwise(0)
    steady = readings.filter(pl.col(counter).is_not_null()).with_columns(
        (pl.col(counter) + lost.fill_null(0).cum_sum().over("series")).alias("steady")
    )
    if steady.is_empty():
        return at_readings(steady, pl.lit(None, pl.Float64))
    range_ns = round(range_s * NS)
    windows = steady.rolling("at_ns", period=f"{range_ns}i", closed="right", group_by=["subject", "series"]).agg(
        pl.len().alias("samples"),
        pl.col("at_ns").first().alias("first_ns"),
        pl.col("at_ns").last().alias("last_ns"),
        pl.col(counter).first().alias("first"),
        (pl.col("steady").last() - pl.col("steady").first()).alias("increase"),
    )
    sampled = (pl.col("last_ns") - pl.col("first_ns")) / NS
    gap = sampled / (pl.col("samples") - 1)
    to_start = (pl.col("first_ns") - (pl.col("at_ns") - range_ns)) / NS
    to_start = pl.when(to_start >= gap * 1.1).then(gap / 2).otherwise(to_start)
    to_zero = pl.when(pl.col("increase") > 0).then(sampled * pl.col("first") / pl.col("increase"))
    # Evaluated at the last sample, so there is nothing to extrapolate at the end.
    value = pl.col("increase") * (sampled + pl.min_horizontal(to_start, to_zero)) / sampled / range_s
    return windows.select(
        "subject",
        "series",
        pl.col("first_ns").alias("from_ns"),
        pl.col("last_ns").alias("to_ns"),
        pl.when(pl.col("samples") > 1).then(value).alias("value"),
    ).filter(pl.col("from_ns") < pl.col("to_ns"))


def cpu_cores(readings: pl.DataFrame, range_s: float = RANGE_S) -> pl.DataFrame:
    """CPUs by rate(container_cpu_usage_seconds_total[range]), from when the trace is as long as the range.

    Earlier values would be those of a container that Prometheus sees for the first time.
    """
    first = readings.group_by("series").agg(pl.col("at_ns").min().alias("began_ns"))
    whole = rate(readings, "usage_ns", range_s).join(first, on="series")
    seen = whole.filter(pl.col("to_ns") - pl.col("began_ns") >= range_s * NS)
    return seen.with_columns(pl.col("value") / NS).drop("began_ns")


def cpu_cores_irate(readings: pl.DataFrame) -> pl.DataFrame:
    """CPUs by irate(): from the two newest samples, without extrapolation. Usage that fell restarted at 0."""
    usage = grown("usage_ns")
    return over_intervals(readings, pl.when(usage < 0).then("usage_ns").otherwise(usage) / grown("at_ns"))


def working_set_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Memory usage minus inactive page cache, not below 0."""
    return at_readings(readings, (pl.col("memory_bytes") - pl.col("inactive_file_bytes")).clip(lower_bound=0))


def fs_reads_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """container_fs_reads_bytes_total: from BFQ's file, else the throttle's; null without entries."""
    return at_readings(readings, pl.coalesce("bfq_read_bytes", "read_bytes"))


def fs_writes_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """container_fs_writes_bytes_total: from BFQ's file, else the throttle's; null without entries."""
    return at_readings(readings, pl.coalesce("bfq_written_bytes", "written_bytes"))


_ORDER = "opencontainers/cgroups fs/blkio.go GetStats"

CADVISOR = View(
    tool="cadvisor",
    title="cAdvisor under rate()",
    cadence="Its 1 s is 1 to 2 s, and up to 60 s for an idle container, unless -jitter_factor=0 and "
    "-allow_dynamic_housekeeping=false; Prometheus scrapes at times of its own and keeps cAdvisor's time "
    "stamps, in milliseconds.",
    quantities=(
        Quantity(
            name="cpu_cores",
            shown="rate(container_cpu_usage_seconds_total[5s])",
            unit="CPUs",
            measure=Measure.CONTAINER_CPU,
            kind=Kind.RATE,
            readings="cgroup cpu",
            formula=partial(cpu_cores, range_s=RANGE_S),
            between=cpu_cores_irate,
            says="increase of usage over the range, extrapolated to its borders, / range",
            cites=f"{METRICS} container_cpu_usage_seconds_total; {RATE}",
            step=1e-9,
            grain=Grain("cgroup", "usage_ns", lambda _: 1 / NS),
            cores=lambda _: 100.0,
            clock_s=lambda _: 0.001,
        ),
        Quantity(
            name="cpu_cores_irate",
            shown="irate(container_cpu_usage_seconds_total[5s])",
            unit="CPUs",
            measure=Measure.CONTAINER_CPU,
            kind=Kind.RATE,
            readings="cgroup cpu",
            formula=cpu_cores_irate,
            says="Δusage / Δtime stamp of the two newest scrapes",
            cites=f"{METRICS} container_cpu_usage_seconds_total; {INSTANT}",
            step=1e-9,
            grain=Grain("cgroup", "usage_ns", lambda _: 1 / NS),
            cores=lambda _: 100.0,
            clock_s=lambda _: 0.001,
        ),
        Quantity(
            name="working_set_bytes",
            shown="container_memory_working_set_bytes",
            unit="B",
            measure=Measure.CONTAINER_MEMORY,
            kind=Kind.GAUGE,
            readings="cgroup memory",
            formula=working_set_bytes,
            says="usage - total_inactive_file (v1) or inactive_file (v2), not below 0",
            cites=f"{HANDLER} setMemoryStats",
            step=1.0,
            paged=1.0,
            lags=lag_bytes,
        ),
        Quantity(
            name="fs_reads_bytes",
            shown="container_fs_reads_bytes_total",
            unit="B",
            measure=Measure.CONTAINER_READ,
            kind=Kind.TOTAL,
            readings="cgroup io",
            formula=fs_reads_bytes,
            says="the first file with entries of BFQ's, CFQ's, throttle_recursive, throttle (v1); io.stat "
            "rbytes (v2); no series where none has any",
            cites=f"{METRICS} ioValues; {_ORDER}",
            step=1.0,
        ),
        Quantity(
            name="fs_writes_bytes",
            shown="container_fs_writes_bytes_total",
            unit="B",
            measure=Measure.CONTAINER_WRITTEN,
            kind=Kind.TOTAL,
            readings="cgroup io",
            formula=fs_writes_bytes,
            says="as for reads",
            cites=f"{METRICS} ioValues; {_ORDER}",
            step=1.0,
        ),
    ),
    blind_to=(
        "anything shorter than the range of rate(), which also spreads a burst over it",
        "steal",
        "disk I/O where no file has entries: the series is then missing, which a dashboard shows as a gap or as 0",
        (
            "sums gone wrong: container_blkio_device_usage_total has Read, Write, Sync, Async and Total, and a "
            "sum() over all of them counts each byte more than once"
        ),
        "pressure on a hybrid host, where it exports 0",
    ),
)
