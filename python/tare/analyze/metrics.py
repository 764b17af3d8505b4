"""What is compared: each metric's name, where its value stands in a measurement, and how to read its sign."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """One number of each run. `path`: keys from the top of the JSON of `workloads.Measurement`.

    `bucketed`: read from the generator's histogram, and so known to one bucket at best.
    """

    name: str
    title: str
    unit: str
    path: tuple[str, ...]
    more_is_better: bool
    bucketed: bool

    def read(self, measurement: Mapping[str, Any] | None) -> float | None:
        """The value, `None` where the generator did not report it."""
        value: Any = measurement
        for key in self.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and math.isfinite(value) else None


def _latency(name: str, title: str, key: str, *, bucketed: bool) -> Metric:
    return Metric(name, title, "ms", ("latency", key), more_is_better=False, bucketed=bucketed)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("throughput", "throughput", "/s", ("throughput_per_s",), more_is_better=True, bucketed=False),
        # sysbench keeps the sum beside the histogram, so the mean is not subject to the bucket's width.
        _latency("latency_mean", "mean latency", "mean_ms", bucketed=False),
        _latency("latency_p50", "median latency", "p50_ms", bucketed=True),
        _latency("latency_p95", "95th percentile latency", "p95_ms", bucketed=True),
        _latency("latency_p99", "99th percentile latency", "p99_ms", bucketed=True),
    )
}
"""In the order in which reports show them; the first is the primary metric."""

PRIMARY = "throughput"


def resolution_of(measurement: Mapping[str, Any] | None) -> float | None:
    """Relative width of the generator's histogram bucket: 0.018 for sysbench."""
    return Metric("", "", "", ("latency", "resolution"), more_is_better=False, bucketed=False).read(measurement)
