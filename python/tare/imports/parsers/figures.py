"""Figures of imported reports, and the record's measurement that they make; what is unknown is `None`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from operator import attrgetter
from typing import Any

from tare.errors import RunFailed
from tare.imports.parsers import LARGEST_FIGURE
from tare.imports.parsers.columns import Columns
from tare.record.measurement import Histogram, Latency, Measurement, Operation, Window

_of_window = attrgetter(*(each.name for each in fields(Window)))
NUMBER = r"(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"


@dataclass(frozen=True)
class Times:
    """Latencies in ms; `None` is unknown. `resolution`: relative width of the tool's buckets.

    `blind`: whether requests that a stall kept back were not timed; `None` if the report does not say.
    """

    mean: float | None = None
    least: float | None = None
    most: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    resolution: float | None = None
    blind: bool | None = None

    def latency(self) -> Latency:
        """The record's latency."""
        return Latency(
            mean_ms=self.mean,
            min_ms=self.least,
            max_ms=self.most,
            p50_ms=self.p50,
            p95_ms=self.p95,
            p99_ms=self.p99,
            resolution=self.resolution,
            blind_to_stalls=self.blind,
            timed_from=None if self.blind is None else "actual-send" if self.blind else "intended-send",
        )


@dataclass(frozen=True)
class Kind:
    """Figures of one kind of operation."""

    latency: Times
    operations: int | None = None
    errors: int = 0
    histogram: Histogram = ()


@dataclass(frozen=True)
class Figures:
    """What a report gives; `measurement` makes the record's of it."""

    throughput: float | None
    latency: Times = field(default_factory=Times)
    unit: str = "operations"
    operations: int | None = None
    duration_s: float | None = None
    queries_per_s: float | None = None
    errors: int | None = 0
    reconnects: int | None = None
    histogram: Sequence[tuple[float, int]] = ()
    windows: Iterable[Window] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)
    started_at: float | None = None

    def measurement(self) -> Measurement:
        """The record's measurement."""
        return Measurement(
            operations=self.operations,
            unit=self.unit,
            duration_s=self.duration_s,
            throughput_per_s=self.throughput,
            queries_per_s=self.queries_per_s,
            errors=self.errors,
            reconnects=self.reconnects,
            latency=self.latency.latency(),
            histogram=tuple(self.histogram),
            windows=tuple(self.windows),
            details=dict(self.details),
            by_operation={
                name: Operation(each.operations, each.errors, each.latency.latency(), histogram=each.histogram)
                for name, each in self.kinds.items()
            },
            started_at=self.started_at,
        )


def plausible(measured: Measurement, columns: Columns | None = None) -> Measurement:
    """Return a measurement. Raises `RunFailed` if a number is not finite or above `LARGEST_FIGURE`."""
    windows = columns.figures.values() if columns else map(_of_window, measured.windows)
    series = chain(chain.from_iterable(windows), chain.from_iterable(measured.histogram))
    figures = [figure for figure in series if figure is not None]  # most of a run: `asdict` would copy each
    if not all(map(LARGEST_FIGURE.__ge__, map(abs, figures))):
        _must_be_plausible(figures)
    _must_be_plausible(asdict(replace(measured, windows=(), histogram=())))
    return measured


def _must_be_plausible(tree: Any) -> None:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for each in tree:
            _must_be_plausible(each)
    elif isinstance(tree, float | int) and not abs(tree) <= LARGEST_FIGURE:
        raise RunFailed(f"a figure of {tree:g} is not plausible")


def number_in(tree: Mapping[str, Any], name: str) -> float | None:
    """A finite number of a JSON object; `None` if it lacks it, or has something else there."""
    value = tree.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LARGEST_FIGURE else None
