"""Shift of latency from a baseline to an arm, quantile by quantile, with the interval of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

from tare.analyze.estimate import Estimate
from tare.analyze.estimator import paired
from tare.analyze.runs import Runs, select_runs
from tare.analyze.statistics.histogram import percentile_of
from tare.record.measurement import Measurement, Operation
from tare.record.run_record import RunRecord
from tare.study.model import Study

PERCENTS = (5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)
BEYOND = 10
"""Fewest events of a run on either side of a quantile; with fewer, single events decide."""


@dataclass(frozen=True)
class Quantile:
    """One quantile of the latencies of both sides (medians over the runs used), and the effect on it."""

    percent: float
    baseline_ms: float
    arm_ms: float
    estimate: Estimate
    """Relative effect, paired by block like every estimate; valid for this quantile alone."""
    resolution: float | None
    """Relative width of the generator's histogram bucket; a smaller shift cannot be told from none."""

    @property
    def resolved(self) -> bool:
        """Whether the shift is larger than one bucket."""
        point = self.estimate.point
        return point is not None and (self.resolution is None or abs(point) > self.resolution)


@dataclass(frozen=True)
class QuantileShift:
    """An arm against its baseline. `operation`: kind of operation; `None` for all kinds together."""

    arm: str
    baseline: str
    operation: str | None
    control: bool
    quantiles: tuple[Quantile, ...]


def quantile_shifts(study: Study, records: Sequence[RunRecord]) -> tuple[QuantileShift, ...]:
    """Estimate the shifts of each arm in the study's order, by kind of operation if only kinds have histograms.

    Empty for runs without histograms. At each quantile of `PERCENTS` that `BEYOND` allows in every run used, runs
    are paired by block: `paired`. The shift of quantiles: Doksum (1974), "Empirical probability plots and
    statistical inference for nonlinear models", Annals of Statistics 2(2).
    """
    runs = select_runs(study, records)
    parts = {place: dict(_parts(run)) for place, run in runs.good.items()}
    kinds = dict.fromkeys(kind for each in parts.values() for kind in each)
    whole = [None] if None in kinds else sorted(kind for kind in kinds if kind is not None)
    shifts = [
        QuantileShift(arm.name, baseline, kind, arm.control, _quantiles(study, runs, parts, arm.name, kind))
        for arm in study.arms
        if (baseline := study.baseline_of(arm.name)) != arm.name
        for kind in whole
    ]
    return tuple(shift for shift in shifts if shift.quantiles)


@dataclass(frozen=True)
class _Part:
    """Latencies of one run, or of one kind of operation in it."""

    measured: Measurement | Operation
    events: int

    def at(self, percent: float) -> float | None:
        """Latency at a percentile; `None` also if too few events lie beyond it."""
        beyond = self.events * min(percent, 100 - percent) / 100
        if round(beyond, 6) < BEYOND:
            return None
        return percentile_of(self.measured, percent)


Parts = Mapping[tuple[int, str], Mapping[str | None, _Part]]
"""(block, arm) → kind of operation → latencies."""


def _parts(run: RunRecord) -> Iterator[tuple[str | None, _Part]]:
    if run.measurement is None:
        return
    whole: Iterable[tuple[str | None, Measurement | Operation]] = [(None, run.measurement)]
    for kind, part in chain(whole, run.measurement.by_operation.items()):
        if part.histogram:
            yield kind, _Part(part, sum(count for _, count in part.histogram))


def _quantiles(study: Study, runs: Runs, parts: Parts, arm: str, kind: str | None) -> tuple[Quantile, ...]:
    baseline = study.baseline_of(arm)
    blocks = [
        block
        for block in runs.blocks_of(arm)
        if all(kind in parts.get((block, side), ()) for side in (arm, baseline))
    ]
    ours, theirs = ([parts[block, side][kind] for block in blocks] for side in (arm, baseline))
    quantiles = (_quantile(study, percent, blocks, ours, theirs) for percent in PERCENTS)
    return tuple(each for each in quantiles if each is not None)


def _quantile(
    study: Study, percent: float, blocks: Sequence[int], ours: Sequence[_Part], theirs: Sequence[_Part]
) -> Quantile | None:
    """Estimate one quantile; `None` if any run lacks it, as the others would be a biased selection."""
    pairs = [(one.at(percent), other.at(percent)) for one, other in zip(ours, theirs, strict=True)]
    known = [(one, other) for one, other in pairs if one is not None and other is not None and one > 0 < other]
    if not known or len(known) < len(pairs):
        return None
    widths = [part.measured.latency.resolution for part in (*ours, *theirs)]
    return Quantile(
        percent=percent,
        baseline_ms=median(other for _, other in known),
        arm_ms=median(one for one, _ in known),
        estimate=paired(study, [one / other for one, other in known], blocks),
        resolution=max((width for width in widths if width is not None), default=None),
    )
