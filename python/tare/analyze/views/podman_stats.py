"""podman stats: the current version on control groups v2, and versions before 6 on v1 where noted."""

from __future__ import annotations

import polars as pl

from tare.analyze.views.formulas import at_readings, grown, lag_bytes, over_intervals
from tare.analyze.views.model import Grain, Kind, Measure, Quantity, View

STATS = "containers/podman libpod/stats_linux.go"
LIBRARY = "containers/common pkg/cgroups"
NETWORK = "containers/podman cmd/podman/containers/stats.go NetIO; libpod/networking_linux.go getContainerNetIO"


def cpu_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """Δusage / Δwall * 100, and 0 unless both grew."""
    usage, wall = grown("usage_ns"), grown("at_ns")
    value = pl.when((usage > 0) & (wall > 0)).then(usage / wall * 100).otherwise(0.0)
    return over_intervals(readings, pl.when(usage.is_not_null()).then(value))


def memory_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Memory usage minus inactive page cache; 0 if nothing would be left."""
    usage, inactive = pl.col("memory_bytes"), pl.col("inactive_file_bytes")
    return at_readings(readings, pl.when(inactive < usage).then(usage - inactive).otherwise(0))


def memory_bytes_raw(readings: pl.DataFrame) -> pl.DataFrame:
    """Memory usage with page cache, as in versions before the library subtracted inactive page cache."""
    return at_readings(readings, pl.col("memory_bytes"))


def block_read_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes read so far; 0 without entries."""
    return at_readings(readings, pl.col("read_bytes").fill_null(0))


def block_written_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes written so far; 0 without entries."""
    return at_readings(readings, pl.col("written_bytes").fill_null(0))


def network_rx_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes received so far over all interfaces of the network namespace."""
    return at_readings(readings, pl.col("rx_bytes"))


def network_tx_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes sent so far over all interfaces of the network namespace."""
    return at_readings(readings, pl.col("tx_bytes"))


PODMAN_STATS = View(
    tool="podman-stats",
    title="podman stats",
    cadence="5 s by default (--interval). Its first sample is the average since the container's start.",
    quantities=(
        Quantity(
            name="cpu_percent",
            shown="CPU %",
            unit="%",
            measure=Measure.CONTAINER_CPU,
            kind=Kind.RATE,
            readings="cgroup cpu",
            formula=cpu_percent,
            says="Δusage / Δwall clock * 100",
            cites=f"{STATS} calculateCPUPercent",
            step=0.01,
            grain=Grain("cgroup", "usage_ns", lambda _: 100 / 1e9),
            cores=lambda _: 1.0,
        ),
        Quantity(
            name="memory_bytes",
            shown="MEM USAGE",
            unit="B",
            measure=Measure.CONTAINER_MEMORY,
            kind=Kind.GAUGE,
            readings="cgroup memory",
            formula=memory_bytes,
            says="usage - inactive_file, 0 where that is not above 0",
            cites=f"{LIBRARY}/memory_linux.go memoryStat (since containers/common#2455)",
            step=1.0,
            paged=1.0,
            lags=lag_bytes,
        ),
        Quantity(
            name="memory_bytes_raw",
            shown="MEM USAGE, with cache",
            unit="B",
            measure=Measure.CONTAINER_MEMORY,
            kind=Kind.GAUGE,
            readings="cgroup memory",
            formula=memory_bytes_raw,
            says="usage, page cache included",
            cites=f"{STATS} getPlatformContainerStats; {LIBRARY}/memory_linux.go before containers/common#2455",
            step=1.0,
            paged=1.0,
        ),
        Quantity(
            name="block_read_bytes",
            shown="BLOCK IO in",
            unit="B",
            measure=Measure.CONTAINER_READ,
            kind=Kind.TOTAL,
            readings="cgroup io",
            formula=block_read_bytes,
            says="v2: io.stat rbytes; v1: blkio.throttle.io_service_bytes_recursive and no other file",
            cites=f"{STATS} calculateBlockIO; {LIBRARY}/blkio_linux.go",
            step=1.0,
        ),
        Quantity(
            name="block_written_bytes",
            shown="BLOCK IO out",
            unit="B",
            measure=Measure.CONTAINER_WRITTEN,
            kind=Kind.TOTAL,
            readings="cgroup io",
            formula=block_written_bytes,
            says="as for reads, with wbytes on v2",
            cites=f"{STATS} calculateBlockIO; {LIBRARY}/blkio_linux.go",
            step=1.0,
        ),
        Quantity(
            name="network_rx_bytes",
            shown="NET IO in",
            unit="B",
            measure=Measure.CONTAINER_NETWORK,
            kind=Kind.TOTAL,
            readings="sandboxes",
            formula=network_rx_bytes,
            says="rx_bytes summed over the interfaces of its network namespace, loopback left out, since its start",
            cites=NETWORK,
            step=1.0,
        ),
        Quantity(
            name="network_tx_bytes",
            shown="NET IO out",
            unit="B",
            measure=Measure.CONTAINER_NETWORK,
            kind=Kind.TOTAL,
            readings="sandboxes",
            formula=network_tx_bytes,
            says="tx_bytes summed over the interfaces of its network namespace, loopback left out, since its start",
            cites=NETWORK,
            step=1.0,
        ),
    ),
    blind_to=(
        "steal, throttling, waiting and pressure",
        "disk I/O wherever the one file that it reads stays empty: it then prints 0 B",
        "buffered writes on v1: writeback is charged to the root group",
        (
            "loopback traffic; with --network container: the other's traffic is shown as its own, so that a sum "
            "counts it twice; with the host's network it prints 0 B"
        ),
        "conmon, slirp4netns and pasta, which are outside the container's group",
    ),
)
