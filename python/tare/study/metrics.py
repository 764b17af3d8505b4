"""The metrics that are compared: names that a study may use, with what a report and the reference say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PRIMARY = "throughput"


@dataclass(frozen=True)
class MetricSpec:
    """One number of each run. `analyze.derived` has a function for those that no `path` leads to."""

    name: str
    title: str
    short: str
    """Title in a table's head."""
    unit: str
    meaning: str
    """Sentence in docs/reference/metrics.md."""
    path: tuple[str, ...] = ()
    """Keys from the top of the JSON of `workloads.Measurement`."""
    percent: float | None = None
    """Percentile of the stored histogram, so that its precision is one bucket; `None` for other values."""
    more_is_better: bool = False

    @property
    def by_operation(self) -> bool:
        """Whether generators report it for single kinds of operations too."""
        return self.path[:1] == ("latency",)


SPECS: Mapping[str, MetricSpec] = {
    spec.name: spec
    for spec in (
        MetricSpec(
            PRIMARY, "throughput", "throughput", "/s", "Operations that the generator completed in a second.",
            path=("throughput_per_s",), more_is_better=True,
        ),
        MetricSpec(
            "latency_mean", "mean latency", "mean latency", "ms",
            "Mean latency, from a sum that the generator keeps, so buckets do not limit it.",
            path=("latency", "mean_ms"),
        ),
        MetricSpec(
            "latency_p50", "median latency", "median latency", "ms",
            "Half of the operations take at most this long.",
            path=("latency", "p50_ms"), percent=50,
        ),
        MetricSpec(
            "latency_p95", "95th percentile latency", "p95 latency", "ms",
            "95 of 100 operations take at most this long.",
            path=("latency", "p95_ms"), percent=95,
        ),
        MetricSpec(
            "latency_p99", "99th percentile latency", "p99 latency", "ms",
            "99 of 100 operations take at most this long.",
            path=("latency", "p99_ms"), percent=99,
        ),
        MetricSpec(
            "cpu_per_operation", "CPU time per operation", "CPU/op", "µs",
            "CPU time of the SUT, and of the program that carried its bytes, such as docker-proxy.",
        ),
        MetricSpec(
            "io_per_operation", "block I/O per operation", "I/O/op", "KiB",
            "Bytes that the SUT read from and wrote to block devices.",
        ),
    )
}  # fmt: skip
"""Metrics in the order of reports; the first is the primary metric."""

LATENCIES = tuple(name for name, spec in SPECS.items() if spec.by_operation)
_LATENCY = rf"([a-z][a-z0-9-]*_)?({'|'.join(LATENCIES)})"
PUBLISHED_METRIC = rf"^({PRIMARY}|{_LATENCY})$"
"""Pattern of the metrics of publications, over all operations or of one kind: `read_latency_mean`."""
COMPARED_METRIC = rf"^({'|'.join(name for name in SPECS if name not in LATENCIES)}|{_LATENCY})$"
"""Pattern of all metrics that are compared."""
