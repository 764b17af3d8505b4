"""The result of one study of a calibration: each contrast, by the product's own analysis, with its truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from tare.analyze import Estimate, analyze
from tare.analyze.metrics import METRICS, PRIMARY
from tare.calibrate.kinds import Contrast, Kind, Raw, Reading
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.run.resume import StudyState, remaining
from tare.study.model import Study
from tare.study.values import Strict

Estimator = Callable[[Study, Sequence[RunRecord], str], Estimate]
"""Study, records and arm → its throughput relative to the baseline's."""


@dataclass(frozen=True)
class CalibrationStudy:
    """One study of a kind with everything recorded of it; `name`: the kind's."""

    name: str
    number: int
    kind: Kind
    study: Study
    records: Sequence[RunRecord]
    raw: Raw


class ContrastResult(Strict):
    """One contrast of one study; effects are log ratios of throughput.

    `low`, `high`: the interval that the study's report would show. `spread`: standard deviation over blocks.
    `truth`: mean of the injection's reading over the blocks; zero for two instances of the same arm.
    """

    kind: str
    study: int
    arm: str
    deployment: str
    injection: str | None
    n: int
    point: float
    low: float
    high: float
    spread: float
    truth: float | None
    run_s: float
    """Mean machine time of the study's runs, in seconds."""
    usual: bool

    @property
    def excludes_zero(self) -> bool:
        """Whether a report would call the contrast a difference."""
        return self.low > 0 or self.high < 0


def by_product(study: Study, records: Sequence[RunRecord], arm: str) -> Estimate:
    """Estimate the effect as `tare report` does."""
    return analyze(study, records).finding(arm, PRIMARY).estimate


def finished(plan: Plan, done: StudyState) -> bool:
    """Whether every run that the protocol still asks for has used up its retries."""
    tries = 1 + plan.study.protocol.retries
    return all(done.attempts[run.id] >= tries for run in remaining(plan, done))


def outcome(made: CalibrationStudy, estimator: Estimator = by_product) -> tuple[ContrastResult, ...]:
    """Return every contrast that has an interval."""
    seen = (_observed(made, contrast, estimator) for contrast in made.kind.contrasts)
    return tuple(each for each in seen if each is not None)


def _observed(made: CalibrationStudy, contrast: Contrast, estimator: Estimator) -> ContrastResult | None:
    pair, own = _alone(made.study, made.records, contrast)
    estimate = estimator(pair, own, contrast.arm)
    if estimate.point is None or estimate.low is None or estimate.high is None:
        return None
    injection, truth = contrast.injection, [0.0]
    if injection is not None:
        truth = _log_ratios(own, contrast, injection.reading, made.raw)
    arm = next(each for each in pair.arms if each.name == contrast.arm)
    return ContrastResult(
        kind=made.name,
        study=made.number,
        arm=contrast.arm,
        deployment=arm.settings.sut.deployment,
        injection=None if injection is None else injection.title,
        n=estimate.n,
        point=math.log1p(estimate.point),
        low=math.log1p(estimate.low),
        high=math.log1p(estimate.high),
        spread=stdev(_log_ratios(own, contrast, _throughput, made.raw)),
        truth=fmean(truth) if truth else None,
        run_s=fmean(record.machine_s for record in made.records),
        usual=made.kind.usual,
    )


def _throughput(record: RunRecord, raw: Raw) -> float | None:
    del raw
    return METRICS[PRIMARY].of(record)


def _alone(study: Study, records: Sequence[RunRecord], contrast: Contrast) -> tuple[Study, tuple[RunRecord, ...]]:
    """Reduce the study to the two arms of a contrast, so that they are judged as any arm and its baseline."""
    names = (contrast.baseline, contrast.arm)
    arms = tuple(arm for arm in study.arms if arm.name in names)
    pair = study.model_copy(update={"arms": arms, "baseline": contrast.baseline})
    return pair, tuple(record for record in records if record.arm in names)


def _log_ratios(records: Sequence[RunRecord], contrast: Contrast, reading: Reading, raw: Raw) -> list[float]:
    """Log ratios of a reading by block, for good runs that have one."""
    read: dict[tuple[int, str], float | None] = {}
    for record in records:
        if record.outcome.ok:
            read.setdefault((record.block, record.arm), reading(record, raw))
    blocks = sorted({block for block, _ in read})
    pairs = ((read.get((block, contrast.arm)), read.get((block, contrast.baseline))) for block in blocks)
    return [math.log(value / reference) for value, reference in pairs if value and reference]
