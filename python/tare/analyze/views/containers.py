"""Tools of control groups as tables: kernel's counters, docker stats, podman stats, cAdvisor, metrics-server."""

from __future__ import annotations

from functools import partial

import polars as pl

from tare.analyze.views.formulas import NS, at_readings, grown, lag_bytes, lag_percent
from tare.analyze.views.model import Grain, Kind, Measure, Quantity, View

_USAGE, _WALL, _CHARGED, _INACTIVE = (
    grown("usage_ns"), grown("at_ns"), pl.col("memory_bytes"), pl.col("inactive_file_bytes")
)  # fmt: skip
_SYSTEM = grown("system_ticks") * NS / pl.col("user_hz")
"""Δsystem as dockerd computes it, in nanoseconds: ticks of all CPUs, user to softirq, without steal."""
_SLOPE = pl.when(_USAGE >= 0).then(_USAGE / _WALL)
_WORKING_SET = (_CHARGED - _INACTIVE).clip(lower_bound=0)
_DOCKER_MEMORY = pl.when(_INACTIVE < _CHARGED).then(_CHARGED - _INACTIVE).otherwise(_CHARGED)
SYSTEM_S = _SYSTEM / pl.col("cpus") / NS
"""Δsystem / CPUs in seconds, which docker uses as the elapsed time."""

_of_cpu = partial(Quantity, measure=Measure.CONTAINER_CPU, kind=Kind.RATE, readings="cgroup cpu")
_percent = partial(_of_cpu, unit="%", grain=Grain("cgroup", "usage_ns", lambda _: 100 / NS), cores=lambda _: 1.0)
_cpus = partial(
    _of_cpu, unit="CPUs", grain=Grain("cgroup", "usage_ns", lambda _: 1 / NS), cores=lambda _: 100.0,
    clock_s=lambda _: 0.001,
)  # fmt: skip
_bytes = partial(Quantity, unit="B", step=1.0)
_charged = partial(_bytes, measure=Measure.CONTAINER_MEMORY, kind=Kind.GAUGE, readings="cgroup memory")
_memory = partial(_charged, paged=1.0, lags=lag_bytes)
_read = partial(_bytes, measure=Measure.CONTAINER_READ, kind=Kind.TOTAL, readings="cgroup io")
_written = partial(_bytes, measure=Measure.CONTAINER_WRITTEN, kind=Kind.TOTAL, readings="cgroup io")
_network = partial(_bytes, measure=Measure.CONTAINER_NETWORK, kind=Kind.TOTAL, readings="sandboxes")

_REQUESTS = (
    "bytes of requests issued since the group was opened",
    "kernel: tracepoint block_rq_issue (include/trace/events/block.h)",
)
KERNEL = View(
    tool="tare-probe",
    title="tare-probe (counters)",
    cadence="0.1 Hz to 1 kHz, on an absolute grid; late and missed ticks are in the trace.",
    quantities=(
        _percent("cpu_percent", "CPU time", _SLOPE * 100, "Δusage / Δtime * 100",
                 "kernel: cpuacct.usage (v1), cpu.stat usage_usec (v2)", step=1e-7),
        _charged("memory_bytes", "memory charged", _CHARGED, "usage, page cache included",
                 "kernel: memory.usage_in_bytes (v1), memory.current (v2)"),
        _charged("anon_bytes", "of it, programs'", pl.col("anon_bytes"), "total_rss (v1) or anon (v2)",
                 "kernel: memory.stat"),
        _read("block_read_bytes", "block requests, read", pl.col("block_read_bytes"), *_REQUESTS,
              readings="cgroup block"),
        _written("block_written_bytes", "block requests, written", pl.col("block_written_bytes"), *_REQUESTS,
                 readings="cgroup block"),
    ),
    blind_to=(
        ("what the kernel does not count: writeback that it charges to the root group on v1 is not in the "
        "container's block requests either"),
        "block requests where tracing programs are not allowed",
    ),
)  # fmt: skip

_CLIENT = "docker/cli cli/command/container/stats_helpers.go"
_BLKIO = "containerd/cgroups cgroup1/blkio.go Stat, cgroup2/manager.go"
DOCKER_STATS = View(
    tool="docker-stats",
    title="docker stats",
    cadence="The daemon sleeps 1 s after it has collected all containers one by one, so 1 s is its fastest "
    "rate and grows with their number. The first frame of a stream has no sample before it and shows 0.",
    quantities=(
        _percent(
            "cpu_percent", "CPU %",
            pl.when(_USAGE.is_not_null() & _SYSTEM.is_not_null()).then(
                pl.when((_USAGE > 0) & (_SYSTEM > 0)).then(_USAGE / _SYSTEM * pl.col("cpus") * 100).otherwise(0.0)
            ),
            "Δusage / Δsystem * online CPUs * 100, where system is user + nice + system + idle + iowait + "
            "irq + softirq of /proc/stat, without steal",
            f"{_CLIENT} calculateCPUPercentUnix; moby/moby daemon/stats_unix.go getSystemCPUUsage",
            step=0.01, weight=SYSTEM_S,
            clock_s=lambda trace: 7 / trace.user_hz / trace.cpus,  # each of seven fields is rounded down to a tick
        ),
        _memory("memory_bytes", "MEM USAGE", _DOCKER_MEMORY,
                "usage - total_inactive_file (v1) or inactive_file (v2); all of usage where that is not above 0",
                f"{_CLIENT} calculateMemUsageUnixNoCache"),
        _memory("memory_bytes_19_03", "MEM USAGE until 19.03", _CHARGED - pl.col("cache_bytes"),
                "usage - cache (v1): the whole page cache, shared memory included",
                "docker/cli 19.03 cli/command/container/stats_helpers.go; moby/moby#40727"),
        _charged("memory_percent", "MEM %", _DOCKER_MEMORY / pl.col("limit_bytes") * 100,
                 "MEM USAGE / limit * 100; without a limit, / the machine's memory",
                 f"{_CLIENT} calculateMemPercentUnixNoCache", unit="%", step=0.01, lags=lag_percent),
        _read("block_read_bytes", "BLOCK I/O read", pl.col("read_bytes").fill_null(0),
              "v1: blkio.throttle.io_service_bytes (CFQ's file where there is one, never BFQ's), not "
              "recursive, of which the trace has the recursive twin; v2: io.stat rbytes; summed over devices "
              "since the container's start", f"{_CLIENT} calculateBlockIO; {_BLKIO}"),
        _written("block_written_bytes", "BLOCK I/O write", pl.col("written_bytes").fill_null(0),
                 "as for reads, with wbytes on v2", f"{_CLIENT} calculateBlockIO; {_BLKIO}"),
        *(_network(f"network_{way}_bytes", f"NET I/O {shown}", pl.col(f"{way}_bytes"),
                   f"{way}_bytes summed over the sandbox's interfaces, since its start",
                   f"{_CLIENT} calculateNetwork") for way, shown in (("rx", "in"), ("tx", "out"))),
    ),
    blind_to=(
        "steal: its denominator leaves it out, so a container seems to use more of a CPU than it got",
        "throttling, waiting and pressure, which its API has in part and its table has not",
        ("disk I/O on v1 with kernels since 2024: the throttle files stay empty until a throttle rule exists, "
         "and an empty list adds up to 0 B"),
        "disk I/O on v1 under BFQ, which counts into files of its own",
        "buffered writes on v1: writeback is charged to the root group",
        ("loopback traffic; with network_mode container: the other's traffic is shown as its own, so that a sum "
         "counts it twice; with the host's network nothing"),
        "dockerd, containerd, shims and docker-proxy, which are outside every container",
    ),
)  # fmt: skip

_STATS, _COMMON = "containers/podman libpod/stats_linux.go", "containers/common pkg/cgroups"
PODMAN_STATS = View(
    tool="podman-stats",
    title="podman stats",
    cadence="5 s by default (--interval). Its first sample is the average since the container's start.",
    quantities=(
        _percent(
            "cpu_percent", "CPU %",
            pl.when(_USAGE.is_not_null()).then(
                pl.when((_USAGE > 0) & (_WALL > 0)).then(_USAGE / _WALL * 100).otherwise(0.0)
            ),
            "Δusage / Δwall clock * 100", f"{_STATS} calculateCPUPercent", step=0.01,
        ),
        _memory("memory_bytes", "MEM USAGE", pl.when(_INACTIVE < _CHARGED).then(_CHARGED - _INACTIVE).otherwise(0),
                "usage - inactive_file, 0 where that is not above 0",
                f"{_COMMON}/memory_linux.go memoryStat (since containers/common#2455)"),
        _charged("memory_bytes_raw", "MEM USAGE, with cache", _CHARGED, "usage, page cache included",
                 f"{_STATS} getPlatformContainerStats; {_COMMON}/memory_linux.go before containers/common#2455",
                 paged=1.0),
        _read("block_read_bytes", "BLOCK IO in", pl.col("read_bytes").fill_null(0),
              "v2: io.stat rbytes; v1: blkio.throttle.io_service_bytes_recursive and no other file",
              f"{_STATS} calculateBlockIO; {_COMMON}/blkio_linux.go"),
        _written("block_written_bytes", "BLOCK IO out", pl.col("written_bytes").fill_null(0),
                 "as for reads, with wbytes on v2", f"{_STATS} calculateBlockIO; {_COMMON}/blkio_linux.go"),
        *(_network(f"network_{way}_bytes", f"NET IO {shown}", pl.col(f"{way}_bytes"),
                   f"{way}_bytes summed over the interfaces of its network namespace, loopback left out, since its "
                   "start", "containers/podman cmd/podman/containers/stats.go NetIO; libpod/networking_linux.go "
                   "getContainerNetIO") for way, shown in (("rx", "in"), ("tx", "out"))),
    ),
    blind_to=(
        "steal, throttling, waiting and pressure",
        "disk I/O wherever the one file that it reads stays empty: it then prints 0 B",
        "buffered writes on v1: writeback is charged to the root group",
        ("loopback traffic; with --network container: the other's traffic is shown as its own, so that a sum "
         "counts it twice; with the host's network it prints 0 B"),
        "conmon, slirp4netns and pasta, which are outside the container's group",
    ),
)  # fmt: skip

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


def _cores_by_rate(readings: pl.DataFrame) -> pl.DataFrame:
    """CPUs by rate(container_cpu_usage_seconds_total[5s]), from when the trace is as long as the range.

    Earlier values would be those of a container that Prometheus sees for the first time.
    """
    first = readings.group_by("series").agg(pl.col("at_ns").min().alias("began_ns"))
    whole = rate(readings, "usage_ns", RANGE_S).join(first, on="series")
    seen = whole.filter(pl.col("to_ns") - pl.col("began_ns") >= RANGE_S * NS)
    return seen.with_columns(pl.col("value") / NS).drop("began_ns")


_METRICS = "google/cadvisor lib/metrics/prometheus.go"
_FUNCTIONS = f"{_METRICS} container_cpu_usage_seconds_total; prometheus/prometheus promql/functions.go"
_IRATE = pl.when(_USAGE < 0).then("usage_ns").otherwise(_USAGE) / _WALL
"""CPUs by irate(): from the two newest samples, without extrapolation. Usage that fell restarted at 0."""
CADVISOR = View(
    tool="cadvisor",
    title="cAdvisor under rate()",
    cadence="Its 1 s is 1 to 2 s, and up to 60 s for an idle container, unless -jitter_factor=0 and "
    "-allow_dynamic_housekeeping=false; Prometheus scrapes at times of its own and keeps cAdvisor's time "
    "stamps, in milliseconds.",
    quantities=(
        _cpus("cpu_cores", "rate(container_cpu_usage_seconds_total[5s])", _IRATE,
              "increase of usage over the range, extrapolated to its borders, / range",
              f"{_FUNCTIONS} extrapolatedRate", step=1e-9, looking_back=_cores_by_rate),
        _cpus("cpu_cores_irate", "irate(container_cpu_usage_seconds_total[5s])", _IRATE,
              "Δusage / Δtime stamp of the two newest scrapes", f"{_FUNCTIONS} instantValue", step=1e-9),
        _memory("working_set_bytes", "container_memory_working_set_bytes", _WORKING_SET,
                "usage - total_inactive_file (v1) or inactive_file (v2), not below 0",
                "google/cadvisor lib/container/libcontainer/handler.go setMemoryStats"),
        _read("fs_reads_bytes", "container_fs_reads_bytes_total", pl.coalesce("bfq_read_bytes", "read_bytes"),
              "the first file with entries of BFQ's, CFQ's, throttle_recursive, throttle (v1); io.stat "
              "rbytes (v2); no series where none has any",
              f"{_METRICS} ioValues; opencontainers/cgroups fs/blkio.go GetStats"),
        _written("fs_writes_bytes", "container_fs_writes_bytes_total",
                 pl.coalesce("bfq_written_bytes", "written_bytes"), "as for reads",
                 f"{_METRICS} ioValues; opencontainers/cgroups fs/blkio.go GetStats"),
    ),
    blind_to=(
        "anything shorter than the range of rate(), which also spreads a burst over it",
        "steal",
        "disk I/O where no file has entries: the series is then missing, which a dashboard shows as a gap or as 0",
        ("sums gone wrong: container_blkio_device_usage_total has Read, Write, Sync, Async and Total, and a "
         "sum() over all of them counts each byte more than once"),
        "pressure on a hybrid host, where it exports 0",
    ),
)  # fmt: skip

_DECODE = "pkg/scraper/client/resource/decode.go"
METRICS_SERVER = View(
    tool="metrics-server",
    title="metrics-server (kubectl top)",
    cadence="15 s (--metric-resolution) over the kubelet's counters, which are up to 10 s old and more where "
    "housekeeping lags.",
    quantities=(
        _cpus("cpu_cores", "CPU(cores)", _SLOPE,
              "Δcontainer_cpu_usage_seconds_total / Δtime stamp of the two newest scrapes",
              f"kubernetes-sigs/metrics-server pkg/storage/types.go resourceUsage; {_DECODE}", step=0.001),
        _memory("memory_bytes", "MEMORY(bytes)", _WORKING_SET,
                "container_memory_working_set_bytes: usage - inactive_file, not below 0",
                f"kubernetes-sigs/metrics-server {_DECODE} parseContainerMemMetrics"),
    ),
    blind_to=(
        "disk and network of every kind",
        "anything shorter than its 15 s, and steal",
        "containers that live for less than two scrapes",
    ),
)  # fmt: skip
