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
    short: str
    unit: str
    path: tuple[str, ...]
    more_is_better: bool
    bucketed: bool

    def read(self, measurement: Mapping[str, Any] | None) -> float | None:
        """The value, `None` where the generator did not report it."""
        return number_at(measurement, self.path)


def number_at(tree: Mapping[str, Any] | None, path: tuple[str, ...]) -> float | None:
    """The finite number at a path of keys, `None` where there is none."""
    value: Any = tree
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _latency(name: str, title: str, short: str, key: str, *, bucketed: bool) -> Metric:
    return Metric(name, title, f"{short} latency", "ms", ("latency", key), more_is_better=False, bucketed=bucketed)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "throughput",
            "throughput",
            "throughput",
            "/s",
            ("throughput_per_s",),
            more_is_better=True,
            bucketed=False,
        ),
        # sysbench keeps the sum beside the histogram, so the mean is not subject to the bucket's width.
        _latency("latency_mean", "mean latency", "mean", "mean_ms", bucketed=False),
        _latency("latency_p50", "median latency", "median", "p50_ms", bucketed=True),
        _latency("latency_p95", "95th percentile latency", "p95", "p95_ms", bucketed=True),
        _latency("latency_p99", "99th percentile latency", "p99", "p99_ms", bucketed=True),
    )
}
"""In the order in which reports show them; the first is the primary metric."""

PRIMARY = "throughput"


def resolution_of(measurement: Mapping[str, Any] | None) -> float | None:
    """Relative width of the generator's histogram bucket: 0.018 for sysbench."""
    return number_at(measurement, ("latency", "resolution"))
