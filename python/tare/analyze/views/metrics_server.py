"""metrics-server, and so kubectl top: differences of two scrapes of the kubelet's cAdvisor."""

from __future__ import annotations

import polars as pl

from tare.analyze.views.formulas import NS, at_readings, grown, lag_bytes, over_intervals
from tare.analyze.views.model import Grain, Kind, Measure, Quantity, View


def cpu_cores(readings: pl.DataFrame) -> pl.DataFrame:
    """Δusage / Δtime stamp in CPUs; null if usage fell, as metrics-server then prints nothing."""
    usage = grown("usage_ns")
    return over_intervals(readings, pl.when(usage >= 0).then(usage / grown("at_ns")))


def memory_bytes(readings: pl.DataFrame) -> pl.DataFrame:
    """Working set: memory usage minus inactive page cache, not below 0."""
    return at_readings(readings, (pl.col("memory_bytes") - pl.col("inactive_file_bytes")).clip(lower_bound=0))


METRICS_SERVER = View(
    tool="metrics-server",
    title="metrics-server (kubectl top)",
    cadence="15 s (--metric-resolution) over the kubelet's counters, which are up to 10 s old and more where "
    "housekeeping lags.",
    quantities=(
        Quantity(
            name="cpu_cores",
            shown="CPU(cores)",
            unit="CPUs",
            measure=Measure.CONTAINER_CPU,
            kind=Kind.RATE,
            readings="cgroup cpu",
            formula=cpu_cores,
            says="Δcontainer_cpu_usage_seconds_total / Δtime stamp of the two newest scrapes",
            cites="kubernetes-sigs/metrics-server pkg/storage/types.go resourceUsage; "
            "pkg/scraper/client/resource/decode.go",
            step=0.001,
            grain=Grain("cgroup", "usage_ns", lambda _: 1 / NS),
            cores=lambda _: 100.0,
            clock_s=lambda _: 0.001,
        ),
        Quantity(
            name="memory_bytes",
            shown="MEMORY(bytes)",
            unit="B",
            measure=Measure.CONTAINER_MEMORY,
            kind=Kind.GAUGE,
            readings="cgroup memory",
            formula=memory_bytes,
            says="container_memory_working_set_bytes: usage - inactive_file, not below 0",
            cites="kubernetes-sigs/metrics-server pkg/scraper/client/resource/decode.go parseContainerMemMetrics",
            step=1.0,
            paged=1.0,
            lags=lag_bytes,
        ),
    ),
    blind_to=(
        "disk and network of every kind",
        "anything shorter than its 15 s, and steal",
        "containers that live for less than two scrapes",
    ),
)
