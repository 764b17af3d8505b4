"""Comparison of what a tool printed with what it should have printed by the trace.

The times at which a tool reads counters are known only to `within_ns`, and the trace has readings at its own times.
So the view of a whole window is computed between every pair of readings at which the tool may have begun and ended.
The real mean must lie among these values, plus or minus the loss of the tool's own arithmetic
(docs/reference/views.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.analyze.views import VIEWS
from tare.analyze.views.compute import SCHEMA
from tare.analyze.views.formulas import over_intervals
from tare.analyze.views.model import Kind, Quantity, View
from tare.analyze.views.readings import READINGS
from tare.store.trace import Trace

OBSERVED = {**SCHEMA, "within_ns": pl.Int64}
"""Schema of a real tool's samples. `within_ns`: uncertainty of `from_ns` and `to_ns`."""
_MOST_CANDIDATES = 12
"""Readings to try at each end of a window; more make no difference that a counter could show."""
_FEWEST_TO_SPARE_ONE = 4
"""Fewest samples of a level to allow for one that no reading of the trace matches."""


@dataclass(frozen=True)
class Comparison:
    """Means over the samples of a tool that the trace covers, in the quantity's unit."""

    tool: str
    quantity: str
    subject: str
    samples: int
    real: float
    view: float
    low: float
    high: float
    """Upper end of the range, from `low`, in which the real mean lies if view and tool agree."""

    @property
    def difference(self) -> float:
        """Real mean minus the view's mean."""
        return self.real - self.view

    @property
    def agrees(self) -> bool:
        """Whether the real mean lies in the expected range."""
        return self.low <= self.real <= self.high


def compare(trace: Trace, observed: pl.DataFrame, views: Mapping[str, View] = VIEWS) -> tuple[Comparison, ...]:
    """Compare every quantity that a tool printed and the trace has counters for. `observed`: schema `OBSERVED`."""
    readings = {name: read(trace) for name, read in READINGS.items()}
    comparisons = []
    for view in views.values():
        for quantity in view.quantities:
            of_quantity = observed.filter(
                (pl.col("tool") == view.tool)
                & (pl.col("quantity") == quantity.name)
                & pl.col("value").is_not_null()
            )
            for (subject,), rows in of_quantity.group_by("subject", maintain_order=True):
                sampled = _series(readings[quantity.readings], str(subject), rows)
                weights = observed.filter(
                    (pl.col("tool") == view.tool)
                    & (pl.col("quantity") == (quantity.weighted_by or ""))
                    & (pl.col("subject") == subject)
                )
                one = _compare(trace, quantity, sampled, _weighed(rows, weights, quantity))
                if one is not None:
                    comparisons.append(Comparison(view.tool, quantity.name, str(subject), **vars(one)))
    return tuple(comparisons)


@dataclass(frozen=True)
class _Figures:
    """Figures of a `Comparison`."""

    samples: int
    real: float
    view: float
    low: float
    high: float


def _series(readings: pl.DataFrame, subject: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Readings of the series of the subject that existed in the middle of the samples."""
    own = readings.filter(pl.col("subject") == subject)
    middle = rows["to_ns"].sort()[len(rows) // 2]
    spans = own.group_by("series").agg(pl.col("at_ns").min().alias("first"), pl.col("at_ns").max().alias("last"))
    there = spans.filter((pl.col("first") <= middle) & (pl.col("last") >= middle))
    return own.filter(pl.col("series") == there["series"][0]) if len(there) else own.clear()


def _weighed(rows: pl.DataFrame, weights: pl.DataFrame, quantity: Quantity) -> pl.DataFrame:
    """Add the column `weight` to samples, in seconds or in events."""
    seconds = (pl.col("to_ns") - pl.col("from_ns")) / 1e9
    if quantity.weighted_by is None:
        return rows.with_columns(seconds.alias("weight"))
    events = weights.select("to_ns", pl.col("value").alias("rate"))
    return rows.join(events, on="to_ns", how="inner").with_columns((pl.col("rate") * seconds).alias("weight"))


def _compare(trace: Trace, quantity: Quantity, readings: pl.DataFrame, rows: pl.DataFrame) -> _Figures | None:
    if readings.is_empty() or rows.is_empty():
        return None
    first, last = int(readings["at_ns"][0]), int(readings["at_ns"][-1])
    covered = rows.filter(
        (pl.col("from_ns") - pl.col("within_ns") >= first) & (pl.col("to_ns") + pl.col("within_ns") <= last)
    ).sort("to_ns")
    if covered.is_empty():
        return None
    if quantity.kind is Kind.RATE:
        return _rates(trace, quantity, readings, covered)
    values = quantity.formula(readings).drop_nulls("value").rename({"to_ns": "at_ns"})
    if values.is_empty() or (quantity.kind is Kind.TOTAL and len(covered) < 2):
        return None
    if quantity.kind is Kind.TOTAL:
        return _growth(quantity.moves_by(trace), values, covered)
    lag = 0.0 if quantity.lags is None else quantity.lags(trace, readings)
    return _means(values, covered, quantity.moves_by(trace) / 2 + 2 * lag)


@dataclass(frozen=True)
class _Seen:
    """A view at an uncertain moment: value of the nearest reading, and range of the readings around it."""

    value: float
    low: float
    high: float


def _seen(values: pl.DataFrame, rows: pl.DataFrame) -> list[_Seen]:
    seen = []
    for at, within in rows.select("to_ns", "within_ns").iter_rows():
        about = _bracket(values, at, within)["value"]
        seen.append(_Seen(float(_nearest(values, at)["value"][0]), float(min(about)), float(max(about))))
    return seen


def _means(values: pl.DataFrame, rows: pl.DataFrame, half: float) -> _Figures:
    """Compare levels, which may have been outside two readings in between.

    `half`: half of the step by which levels move, plus the lags of tool and trace.
    """
    seen, n, real = _seen(values, rows), len(rows), rows["value"].to_list()
    beyond, spared = _beyond(values["value"].to_numpy(), n), _spared(seen, real, half)
    return _Figures(
        samples=n,
        real=sum(real) / n,
        view=sum(one.value for one in seen) / n,
        low=sum(one.low for one in seen) / n - half - beyond.below - spared.below,
        high=sum(one.high for one in seen) / n + half + beyond.above + spared.above,
    )


@dataclass(frozen=True)
class _Beyond:
    """How far the mean of a level may lie outside the range of the readings around its moments."""

    below: float
    above: float


def _spared(seen: Sequence[_Seen], real: Sequence[float], half: float) -> _Beyond:
    """Shift of the mean by the one sample that is farthest outside its readings; 0 for few samples.

    A trace of some seconds cannot show how often a rare level occurs: docs/journal/probe.md. The
    deviations of the other samples are subtracted: a tool that counts something twice deviates in all samples.
    """
    if len(seen) < _FEWEST_TO_SPARE_ONE:
        return _Beyond(0.0, 0.0)
    pairs = list(zip(seen, real, strict=True))
    return _Beyond(
        below=_share_of_largest([max(one.low - half - value, 0.0) for one, value in pairs]),
        above=_share_of_largest([max(value - one.high - half, 0.0) for one, value in pairs]),
    )


def _share_of_largest(excess: Sequence[float]) -> float:
    """Decrease of the mean if the largest excess were the mean of the others."""
    greatest, n = max(excess), len(excess)
    return (greatest - (sum(excess) - greatest) / (n - 1)) / n


def _beyond(values: NDArray[np.float64], samples: int) -> _Beyond:
    """Estimate how far a level between readings may lie outside them, by how far readings lie outside neighbours.

    The mean of these distances, plus three standard errors of a mean of `samples` values.
    """
    if len(values) < 3:
        return _Beyond(0.0, 0.0)
    before, left_out, after = values[:-2], values[1:-1], values[2:]
    below = np.clip(np.minimum(before, after) - left_out, 0.0, None)
    above = np.clip(left_out - np.maximum(before, after), 0.0, None)
    return _Beyond(*(float(each.mean() + 3 * each.std() / np.sqrt(samples)) for each in (below, above)))


def _growth(step: float, values: pl.DataFrame, rows: pl.DataFrame) -> _Figures:
    seen = _seen(values, rows)
    return _Figures(
        samples=len(rows),
        real=float(rows["value"][-1] - rows["value"][0]),
        view=seen[-1].value - seen[0].value,
        low=seen[-1].low - seen[0].high - step,
        high=seen[-1].high - seen[0].low + step,
    )


def _rates(trace: Trace, quantity: Quantity, readings: pl.DataFrame, rows: pl.DataFrame) -> _Figures | None:
    """Compare rates stretch by stretch: pidstat prints no line for an idle process, so samples may be missing.

    Overlapping samples, as of rate() over a range, are a stretch each. A sample that begins where another ended, as
    far as their times are known, continues that stretch.
    """
    middle_before = (pl.col("from_ns").shift(1) + pl.col("to_ns").shift(1)) / 2
    same = pl.min_horizontal(pl.col("within_ns"), (pl.col("to_ns") - pl.col("from_ns")) / 2)
    apart = (pl.col("from_ns") - pl.col("to_ns").shift(1) > same) | (pl.col("from_ns") < middle_before)
    broken = apart.fill_null(value=False).cum_sum()
    stretches = rows.with_columns(broken.alias("stretch")).partition_by("stretch", maintain_order=True)
    weighted = [(one, _weights(quantity, readings, one)) for one in stretches]
    rates = [
        (_stretch(trace, quantity, readings, (one, weights)), float(weights.sum())) for one, weights in weighted
    ]
    known = [(figures, weight) for figures, weight in rates if figures is not None]
    if not known:
        return None
    whole = sum(weight for _, weight in known)

    def mean(of: Callable[[_Figures], float]) -> float:
        if whole <= 0:  # no event in any sample: equal weights
            return sum(of(figures) for figures, _ in known) / len(known)
        return sum(of(figures) * weight for figures, weight in known) / whole

    return _Figures(
        samples=sum(figures.samples for figures, _ in known),
        real=mean(lambda one: one.real),
        view=mean(lambda one: one.view),
        low=mean(lambda one: one.low),
        high=mean(lambda one: one.high),
    )


def _stretch(
    trace: Trace, quantity: Quantity, readings: pl.DataFrame, sampled: tuple[pl.DataFrame, pl.Series]
) -> _Figures | None:
    rows, weights = sampled
    began, ended = int(rows["from_ns"][0]), int(rows["to_ns"][-1])
    starts = _bracket(readings, began, int(rows["within_ns"][0]))
    ends = _bracket(readings, ended, int(rows["within_ns"][-1]))
    possible = quantity.of_neighbours(_pairs(starts, ends))["value"].drop_nulls()
    point = quantity.of_neighbours(_pairs(_nearest(readings, began), _nearest(readings, ended)))[
        "value"
    ].drop_nulls()
    if possible.is_empty() or point.is_empty():
        return None
    values, n, whole = rows["value"], len(rows), float(weights.sum())
    real = float((values * weights).sum()) / whole if whole > 0 else float(values.sum()) / n
    passed_s = (ended - began) / 1e9
    # Uncertainty of a reading's time: the tool's own, and the distance of the trace's readings around it.
    apart_s = (_gap(starts) + _gap(ends)) / 2e9
    clock_s = quantity.clock_s(trace)
    # Relative error of a sample's weight; errors of neighbours cancel except for the two at the ends.
    off = (clock_s + 2 * rows["within_ns"] / 1e9) / (passed_s / n)
    loss = float(((values - real).abs() * off).sum()) / n + quantity.moves_by(trace) / 2
    stretch = (apart_s + clock_s) / passed_s
    return _Figures(
        samples=n,
        real=real,
        view=float(point[0]),
        low=float(min(possible)) * (1 - stretch) - loss,
        high=float(max(possible)) * (1 + stretch) + loss,
    )


def _weights(quantity: Quantity, readings: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    return rows["weight"] if quantity.weight is None else _by_trace(quantity.weight, readings, rows)


def _by_trace(weight: pl.Expr, readings: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """Weights of samples: the tool's divisor, computed from the trace."""
    parts = [
        over_intervals(_pairs(_nearest(readings, began), _nearest(readings, ended)), weight)["value"]
        for began, ended in rows.select("from_ns", "to_ns").iter_rows()
    ]
    return pl.Series([float(part[0]) if len(part) and part[0] is not None else 0.0 for part in parts])


def _bracket(readings: pl.DataFrame, at: int, within: int) -> pl.DataFrame:
    """Readings from the last one at or before `at - within` to the first one at or after `at + within`."""
    times = readings["at_ns"]
    first = max(int((times <= at - within).sum()) - 1, 0)
    last = min(int((times < at + within).sum()), len(times) - 1)
    chosen = readings[first : last + 1]
    if len(chosen) <= _MOST_CANDIDATES:
        return chosen
    steps = _MOST_CANDIDATES - 1
    return chosen[[n * (len(chosen) - 1) // steps for n in range(steps + 1)]]


def _nearest(readings: pl.DataFrame, at: int) -> pl.DataFrame:
    place = int((readings["at_ns"] - at).abs().arg_min() or 0)
    return readings[place : place + 1]


def _gap(readings: pl.DataFrame) -> int:
    return int(readings["at_ns"][-1] - readings["at_ns"][0])


def _pairs(starts: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Pair every start with every later end; each pair is a separate series."""
    return pl.concat(list(_each_pair(starts, ends)) or [starts.clear()])


def _each_pair(starts: pl.DataFrame, ends: pl.DataFrame) -> Iterator[pl.DataFrame]:
    series = 0
    for a in range(len(starts)):
        for b in range(len(ends)):
            if starts["at_ns"][a] < ends["at_ns"][b]:
                pair = pl.concat([starts[a : a + 1], ends[b : b + 1]])
                yield pair.with_columns(pl.lit(series, pl.Int64).alias("series"))
                series += 1
