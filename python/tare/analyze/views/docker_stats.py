"""docker stats: the client's table from the daemon's frames, on control groups v1 and v2."""

from __future__ import annotations

import polars as pl

from tare.analyze.views.formulas import at_readings, grown, lag_bytes, lag_percent, over_intervals
from tare.analyze.views.model import Grain, Kind, Measure, Quantity, View

CLIENT = "docker/cli cli/command/container/stats_helpers.go"
SYSTEM = "moby/moby daemon/stats_unix.go getSystemCPUUsage"


def _system_share() -> pl.Expr:
    """Δsystem as the daemon computes it, in nanoseconds: ticks of all CPUs, user to softirq, without steal."""
    return grown("system_ticks") * 1_000_000_000 / pl.col("user_hz")


def cpu_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """Δusage / Δsystem * CPUs * 100, and 0 unless both grew."""
    usage, system = grown("usage_ns"), _system_share()
    value = pl.when((usage > 0) & (system > 0)).then(usage / system * pl.col("cpus") * 100).otherwise(0.0)
    known = usage.is_not_null() & system.is_not_null()
    return over_intervals(readings, pl.when(known).then(value))


def system_seconds(readings: pl.DataFrame) -> pl.DataFrame:
    """Δsystem / CPUs in seconds, which docker uses as the elapsed time."""
    return over_intervals(readings, _system_share() / pl.col("cpus") / 1e9)


def memory_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Memory usage minus inactive page cache; the whole usage if nothing would be left."""
    usage, inactive = pl.col("memory_bytes"), pl.col("inactive_file_bytes")
    return at_readings(readings, pl.when(inactive < usage).then(usage - inactive).otherwise(usage))


def memory_bytes_19_03(readings: pl.DataFrame) -> pl.DataFrame:
    """Memory usage minus all page cache, as in clients up to 19.03."""
    return at_readings(readings, pl.col("memory_bytes") - pl.col("cache_bytes"))


def memory_percent(readings: pl.DataFrame) -> pl.DataFrame:
    """`memory_bytes` in percent of the limit, or of the machine's memory if there is no lower limit."""
    usage, inactive = pl.col("memory_bytes"), pl.col("inactive_file_bytes")
    used = pl.when(inactive < usage).then(usage - inactive).otherwise(usage)
    return at_readings(readings, used / pl.col("limit_bytes") * 100)


def block_read_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes read so far; 0 without entries."""
    return at_readings(readings, pl.col("read_bytes").fill_null(0))


def block_written_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes written so far; 0 without entries."""
    return at_readings(readings, pl.col("written_bytes").fill_null(0))


def network_rx_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes received so far over all interfaces of the sandbox."""
    return at_readings(readings, pl.col("rx_bytes"))


def network_tx_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Bytes sent so far over all interfaces of the sandbox."""
    return at_readings(readings, pl.col("tx_bytes"))


_BLKIO = "containerd/cgroups cgroup1/blkio.go Stat, cgroup2/manager.go"

DOCKER_STATS = View(
    tool="docker-stats",
    title="docker stats",
    cadence="The daemon sleeps 1 s after it has collected all containers one by one, so 1 s is its fastest "
    "rate and grows with their number. The first frame of a stream has no sample before it and shows 0.",
    quantities=(
        Quantity(
            name="cpu_percent",
            shown="CPU %",
            unit="%",
            measure=Measure.CONTAINER_CPU,
            kind=Kind.RATE,
            readings="cgroup cpu",
            formula=cpu_percent,
            says="Δusage / Δsystem * online CPUs * 100, where system is user + nice + system + idle + iowait + "
            "irq + softirq of /proc/stat, without steal",
            cites=f"{CLIENT} calculateCPUPercentUnix; {SYSTEM}",
            step=0.01,
            grain=Grain("cgroup", "usage_ns", lambda _: 100 / 1e9),
            cores=lambda _: 1.0,
            weight=system_seconds,
            # Each of seven fields is rounded down to a tick.
            clock_s=lambda trace: 7 / trace.user_hz / trace.cpus,
        ),
        Quantity(
            name="memory_bytes",
            shown="MEM USAGE",
            unit="B",
            measure=Measure.CONTAINER_MEMORY,
            kind=Kind.GAUGE,
            readings="cgroup memory",
            formula=memory_bytes,
            says="usage - total_inactive_file (v1) or inactive_file (v2); all of usage where that is not above 0",
            cites=f"{CLIENT} calculateMemUsageUnixNoCache",
            step=1.0,
            paged=1.0,
            lags=lag_bytes,
        ),
        Quantity(
            name="memory_bytes_19_03",
            shown="MEM USAGE until 19.03",
            unit="B",
            measure=Measure.CONTAINER_MEMORY,
            kind=Kind.GAUGE,
            readings="cgroup memory",
            formula=memory_bytes_19_03,
            says="usage - cache (v1): the whole page cache, shared memory included",
            cites="docker/cli 19.03 cli/command/container/stats_helpers.go; moby/moby#40727",
            step=1.0,
            paged=1.0,
            lags=lag_bytes,
        ),
        Quantity(
            name="memory_percent",
            shown="MEM %",
            unit="%",
            measure=Measure.CONTAINER_MEMORY,
            kind=Kind.GAUGE,
            readings="cgroup memory",
            formula=memory_percent,
            says="MEM USAGE / limit * 100; without a limit, / the machine's memory",
            cites=f"{CLIENT} calculateMemPercentUnixNoCache",
            step=0.01,
            lags=lag_percent,
        ),
        Quantity(
            name="block_read_bytes",
            shown="BLOCK I/O read",
            unit="B",
            measure=Measure.CONTAINER_READ,
            kind=Kind.TOTAL,
            readings="cgroup io",
            formula=block_read_bytes,
            says="v1: blkio.throttle.io_service_bytes (CFQ's file where there is one, never BFQ's), not "
            "recursive, of which the trace has the recursive twin; v2: io.stat rbytes; summed over devices "
            "since the container's start",
            cites=f"{CLIENT} calculateBlockIO; {_BLKIO}",
            step=1.0,
        ),
        Quantity(
            name="block_written_bytes",
            shown="BLOCK I/O write",
            unit="B",
            measure=Measure.CONTAINER_WRITTEN,
            kind=Kind.TOTAL,
            readings="cgroup io",
            formula=block_written_bytes,
            says="as for reads, with wbytes on v2",
            cites=f"{CLIENT} calculateBlockIO; {_BLKIO}",
            step=1.0,
        ),
        Quantity(
            name="network_rx_bytes",
            shown="NET I/O in",
            unit="B",
            measure=Measure.CONTAINER_NETWORK,
            kind=Kind.TOTAL,
            readings="sandboxes",
            formula=network_rx_bytes,
            says="rx_bytes summed over the sandbox's interfaces, since its start",
            cites=f"{CLIENT} calculateNetwork",
            step=1.0,
        ),
        Quantity(
            name="network_tx_bytes",
            shown="NET I/O out",
            unit="B",
            measure=Measure.CONTAINER_NETWORK,
            kind=Kind.TOTAL,
            readings="sandboxes",
            formula=network_tx_bytes,
            says="tx_bytes summed over the sandbox's interfaces, since its start",
            cites=f"{CLIENT} calculateNetwork",
            step=1.0,
        ),
    ),
    blind_to=(
        "steal: its denominator leaves it out, so a container seems to use more of a CPU than it got",
        "throttling, waiting and pressure, which its API has in part and its table has not",
        (
            "disk I/O on v1 with kernels since 2024: the throttle files stay empty until a throttle rule exists, "
            "and an empty list adds up to 0 B"
        ),
        "disk I/O on v1 under BFQ, which counts into files of its own",
        "buffered writes on v1: writeback is charged to the root group",
        (
            "loopback traffic; with network_mode container: the other's traffic is shown as its own, so that a sum "
            "counts it twice; with the host's network nothing"
        ),
        "dockerd, containerd, shims and docker-proxy, which are outside every container",
    ),
)
