"""The user's own stores as a test of predictions: each arm predicted from its bare runs, and measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tare.calibrate.summary import identity_of_run
from tare.errors import StudyError
from tare.knowledge.benchmark import benchmark_of, setup_of
from tare.knowledge.claim import ClaimFile
from tare.knowledge.comparable import key_for
from tare.knowledge.forecast import comparable
from tare.knowledge.kept_costs import read_costs
from tare.knowledge.predictions.measured import RateOutcome
from tare.knowledge.predictions.model_error import ASSUMED, NINETY, ModelError, Outcome, learned_errors
from tare.knowledge.predictions.prediction import Prediction, predictions
from tare.knowledge.predictions.traffic import loopback_traffic
from tare.knowledge.prior import applicable, contrast_of, point_of
from tare.report.content import readable
from tare.sites.layout import Layout
from tare.store import open_store
from tare.store_place import Place
from tare.study.model import Study


@dataclass(frozen=True)
class Past:
    """A store, and the predictions for its arms from its bare runs and the unit costs alone.

    With a learned error they are corrected by it, and `outcomes` are then nothing to learn from.
    """

    digest: str
    study: Study
    predictions: tuple[Prediction, ...]

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Predictions with a measurement that has a standard error."""
        return tuple(
            Outcome(
                self.digest,
                self.study.name,
                each.arm,
                each.log_ratio,
                each.of_costs,
                each.measured,
                each.measured_se,
                each.metric,
                0 if each.kept is None else each.kept.dropped,
            )
            for each in self.predictions
            if each.log_ratio is not None
            and each.of_costs is not None
            and each.measured is not None
            and each.measured_se is not None
        )

    @property
    def rates(self) -> tuple[RateOutcome, ...]:
        """Arms at a rate with a known prediction and outcome: whether they fall behind."""
        return tuple(
            RateOutcome(self.digest, self.study.name, each.arm, each.falls_behind, fell_behind, each.kept)
            for each in self.predictions
            if each.falls_behind is not None
            and each.kept is not None
            and (fell_behind := each.kept.fell_behind) is not None
        )


def past_of(store: Place, layout: Layout, error: ModelError = ASSUMED) -> Past:
    """Predict a store, corrected by a learned `error`.

    Raises `StudyError` if it has no good run, or its machine was never weighed here.
    """
    opened = open_store(store)
    study, records = readable(opened.plan.study, opened.records())
    good = [record for record in records if record.outcome.ok]
    if not good:
        raise StudyError(f"{store} has no good run", hint="`tare report` says why")
    costs = read_costs(layout, identity_of_run(next((run for run in good if run.engine), good[0])))
    if costs is None:
        raise StudyError(
            f"no unit costs are known here for the machine of {store}, with its kernel and engine",
            hint="run `tare weigh` there",
        )
    predicted = predictions(study, records, costs, error, traffic=lambda run: loopback_traffic(run, opened.raw))
    return Past(opened.plan.digest, study, tuple(predicted))


@dataclass(frozen=True)
class Judged:
    """An outcome, its prediction with an error learned from the other stores, and the naive predictions.

    `predicted`: log ratio, as corrected; `half`: of its 90 % interval. `published`: mean of the comparable claims
    of others, `None` without any; `mean`: of all claims of its contrast.
    """

    outcome: Outcome
    predicted: float
    half: float
    published: float | None
    mean: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    """Source → its standard deviation in `half`."""

    @property
    def half_points(self) -> float:
        """Half-width of the interval as printed, a fraction of the baseline."""
        return (math.exp(self.predicted + self.half) - math.exp(self.predicted - self.half)) / 2

    @property
    def error_points(self) -> float:
        """Measured minus predicted overhead, a fraction of the baseline."""
        return math.exp(self.outcome.measured) - math.exp(self.predicted)

    @property
    def within(self) -> bool:
        """Whether the measured point lies in the interval."""
        return abs(self.error) <= self.half

    @property
    def explained(self) -> bool:
        """Whether the interval and the measurement's own error explain the measured point.

        The interval is of the true overhead, and the measured one is this plus noise: even a perfect interval holds
        fewer than 90 % of noisy points.
        """
        return abs(self.error) <= math.hypot(self.half, NINETY * self.outcome.measured_se)

    @property
    def error(self) -> float:
        """Measured minus predicted log ratio."""
        return self.outcome.measured - self.predicted


def judged(pasts: Sequence[Past], claims: Sequence[ClaimFile]) -> tuple[Judged, ...]:
    """Judge each outcome with a model error learned from the other stores (leave one out)."""
    found = []
    for past in pasts:
        others = [outcome for other in pasts if other.digest != past.digest for outcome in other.outcomes]
        learned = learned_errors(others)
        for outcome in past.outcomes:
            error = learned.of(outcome.metric)
            half = error.half(outcome.predicted, outcome.of_costs)
            naive = _naive(past.study, outcome, claims)
            parts = error.parts(outcome.predicted, outcome.of_costs)
            found.append(Judged(outcome, error.corrected(outcome.predicted), half, *naive, parts))
    return tuple(found)


def _naive(study: Study, outcome: Outcome, claims: Sequence[ClaimFile]) -> tuple[float | None, float | None]:
    """Return the published figure, and the mean of all claims; own findings are excluded."""
    theirs = [known for known in claims if known.claim.source.store is None]
    arms = {arm.name: arm for arm in study.arms}
    setup, base = setup_of(arms[outcome.arm]), setup_of(arms[study.baseline_of(outcome.arm)])
    database = benchmark_of(study).database
    wanted = key_for(outcome.metric, setup, base, "same")
    near = [point_of(known).y for known in applicable(comparable(theirs, wanted, database))]
    contrast = contrast_of(setup, base)
    every = [
        point_of(known).y
        for known in applicable(theirs)
        if known.claim.effect.metric == outcome.metric
        and known.claim.context is not None
        and contrast_of(known.claim.context.arm, known.claim.context.baseline) == contrast
    ]
    return (statistics.fmean(near) if near else None), (statistics.fmean(every) if every else None)


@dataclass(frozen=True)
class Score:
    """Accuracy of predictions. Errors are mean absolute ones; both of a pair are over the same arms.

    `within`, `explained`: of `arms`, see `Judged`; `half`: median half-width, `error`: of the prediction, both as
    log ratios; `half_points`, `error_points`: of overheads, fractions of the baseline; `beside_published`: the
    prediction's and the published figure's error (log ratios), where there is one; `beside_mean`: likewise of the
    mean of all claims. `variance`: source → its share of the intervals' variance, the mean over arms.
    """

    arms: int
    stores: int
    within: int
    explained: int
    half: float
    error: float
    beside_published: tuple[float, float] | None
    beside_mean: tuple[float, float] | None
    half_points: float
    error_points: float
    variance: Mapping[str, float]


def score_of(found: Sequence[Judged]) -> Score | None:
    """`None` without any."""
    if not found:
        return None
    return Score(
        arms=len(found),
        stores=len({each.outcome.store for each in found}),
        within=sum(each.within for each in found),
        explained=sum(each.explained for each in found),
        half=statistics.median(each.half for each in found),
        error=statistics.fmean(abs(each.error) for each in found),
        beside_published=_pair([(each, each.published) for each in found]),
        beside_mean=_pair([(each, each.mean) for each in found]),
        half_points=statistics.median(each.half_points for each in found),
        error_points=statistics.fmean(abs(each.error_points) for each in found),
        variance=_variance(found),
    )


def _variance(found: Sequence[Judged]) -> Mapping[str, float]:
    """Return shares, so that an arm with a large overhead has no more weight than another."""
    shares = [
        {name: (scale / math.hypot(*each.parts.values())) ** 2 for name, scale in each.parts.items()}
        for each in found
    ]
    names = dict.fromkeys(name for each in shares for name in each)
    return {name: statistics.fmean(each.get(name, 0.0) for each in shares) for name in names}


def _pair(found: Sequence[tuple[Judged, float | None]]) -> tuple[float, float] | None:
    both = [(abs(each.error), abs(each.outcome.measured - naive)) for each, naive in found if naive is not None]
    return (
        (statistics.fmean(own for own, _ in both), statistics.fmean(other for _, other in both)) if both else None
    )


def error_of(pasts: Sequence[Past]) -> ModelError:
    """Learn the model's error from all of these stores."""
    return learned_errors([outcome for past in pasts for outcome in past.outcomes])
