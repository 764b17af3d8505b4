"""Prior for an arm from claims in other contexts, as wide as claims differ between contexts.

The effects of a metric and a contrast (`container` against `bare`), as log ratios, are random effects of their
contexts, which agree the less the more these differ in: y = m + u(context) + w + e, with

    Cov(u(x), u(x')) = s² exp(-Σ over features f that differ of d_f)

w ~ N(0, τ²) from one setting of a study to the next, and e of the claim's own standard error: a Gaussian process
over categories (Qian, Wu & Wu, Technometrics 50(3), 2008). What a source does not tell counts as half a difference.
s, τ and every d_f are learned from all claims: they maximise the likelihood times log-normal priors around
`TYPICAL`, where they stay as far as claims tell nothing. An arm's effect follows as the best linear unbiased
prediction (Henderson, Biometrics 31(2), 1975).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tare.knowledge.benchmark import CONTAINERS, DOCKERIZED, PlannedArm
from tare.knowledge.claim import Between, Claim, ClaimFile, Measured, Setup
from tare.knowledge.comparable import FAMILIES

Floats = NDArray[np.float64]
FEATURES = (
    "database", "network", "storage", "engine", "runtime", "client", "client host", "baseline network",
    "baseline storage", "load",
)  # fmt: skip
"""What the contexts of two claims may differ in."""
STUDY, SPREAD, SETTING = "study", "spread", "setting"
"""What else is learned: how much less claims of two studies agree, s, and τ."""
TYPICAL: Mapping[str, float] = {**dict.fromkeys((*FEATURES, STUDY), 0.3), SPREAD: 0.2, SETTING: 0.05}
"""Before any claim is seen: contexts that differ in one feature correlate by exp(-0.3) = 0.74; s is 20 %, τ 5 %."""
TYPICAL_LOG_SD = 1.0
"""By a factor of e either way."""
MEAN_SD = 0.2
"""Standard deviation of a metric's mean effect before any claim is seen."""
SINGLE_SD = 0.055
"""Standard deviation of a ratio of two single runs: √2 of 3.9 %, the median coefficient of variation in the 720
runs of grambow-2018."""
NINETY = 1.6448536269514722
PROGRAMS = frozenset({"fio", "iperf", "iperf3", "orderbook", "ruby", "sysbench", "web-application"})
"""Programs that are no databases: what one of them loses tells of no database, and of no other program."""
OVERALL = frozenset({
    "throughput", "latency_mean", "latency_p50", "latency_p95", "latency_p99", "execution_time", "cpu_used"
})  # fmt: skip
"""Metrics that every workload has; others, of one kind of operation, are borrowed from the same database only."""
_CITED = 3
_LEAST_WEIGHT = 0.02
_SMALLEST, _LARGEST = 0.01, 30.0
"""Times what is typical: between these, values are looked for."""


@dataclass(frozen=True)
class Point:
    """An effect in its context. `levels`: feature → level, `None`: not told. `y` is unknown of an arm."""

    levels: Mapping[str, str | None]
    study: str
    y: float = math.nan
    variance: float = 0.0


@dataclass(frozen=True)
class Contributor:
    """A claim behind a prior. `weight`: by how much the prediction moves with it."""

    claim: ClaimFile
    weight: float
    differs_in: tuple[str, ...]
    unreported: tuple[str, ...]


@dataclass(frozen=True)
class Prior:
    """A log ratio with its 90 % interval. `claims`, `studies`: from how many; `nearest`: those that weigh most."""

    point: float
    low: float
    high: float
    claims: int
    studies: int
    nearest: tuple[Contributor, ...]


@dataclass(frozen=True)
class Spreads:
    """What was learned: feature or study → d, `SPREAD` → s, `SETTING` → τ. `claims`: from how many."""

    value: Mapping[str, float]
    claims: int

    def between(self, features: Sequence[str]) -> float:
        """Standard deviation of the difference of two effects whose contexts differ in these features."""
        apart = sum(self.value[name] for name in features)
        return math.sqrt(2 * self.value[SPREAD] ** 2 * -math.expm1(-apart))


def applicable(claims: Sequence[ClaimFile]) -> tuple[ClaimFile, ...]:
    """Claims on databases with a figure; no averages of others, none of broken parity, none of weak sources."""
    return tuple(
        known
        for known in claims
        if known.claim.context is not None
        and known.claim.context.database.name not in PROGRAMS
        and isinstance(known.claim.effect, Measured | Between)
        and known.claim.how.summary_of is None
        and known.claim.how.parity != "broken"
        and not known.claim.source.weak
    )


def contrast_of(arm: Setup, baseline: Setup) -> tuple[str, str]:
    """What is set against what. The client's container counts as the arm's where the database has none.

    A pod or a container of containerd counts as a container where the baseline is in none. Of two setups of one
    deployment, what they differ in is the contrast: `container: runtime`.
    """
    sides: list[str] = [
        "container" if each.deployment == "bare" and each.client in DOCKERIZED else each.deployment
        for each in (arm, baseline)
    ]
    if (sides[0] in CONTAINERS) != (sides[1] in CONTAINERS):
        sides = ["container" if side in CONTAINERS else side for side in sides]
    if sides[0] != sides[1]:
        return sides[0], sides[1]
    parts = [
        name
        for name in ("engine", "runtime", "network", "storage")
        if getattr(arm, name) != getattr(baseline, name)
    ]
    return f"{sides[0]}: {', '.join(parts)}", sides[1]


def group_of(claim: Claim) -> tuple[str, str, str] | None:
    """Claims of one group are of one scale: metric and contrast."""
    if claim.context is None or claim.effect.metric is None:
        return None
    return (claim.effect.metric, *contrast_of(claim.context.arm, claim.context.baseline))


def point_of(known: ClaimFile) -> Point:
    """The claim in figures; a range is its middle, with the standard deviation of its half."""
    context, effect = known.claim.context, known.claim.effect
    if context is None:
        raise ValueError(f"{known.id} has no context")
    levels = levels_of(
        context.arm, context.baseline, context.database.name, context.client_host, context.load.level
    )
    if isinstance(effect, Measured):
        return Point(levels, known.study, effect.log_ratio, (effect.se or SINGLE_SD) ** 2)
    if not isinstance(effect, Between):
        raise TypeError(f"{known.id} has no figure")
    low, high = _ends(effect)
    half = (high - low) / 2
    return Point(levels, known.study, (low + high) / 2, SINGLE_SD**2 + (half / NINETY) ** 2)


def _ends(effect: Between) -> tuple[float, float]:
    """An open end is no effect at all, or twice the other end where that is beyond; a size goes both ways."""
    given = [end for end in (effect.low, effect.high) if end is not None]
    if effect.absolute:
        largest = max(abs(end) for end in given)
        return -largest, largest
    if effect.low is None:
        return min(2 * given[0], 0.0), given[0]
    return effect.low, effect.high if effect.high is not None else max(2 * given[0], 0.0)


def levels_of(
    arm: Setup, baseline: Setup, database: str | None, client_host: str | None, load: str | None
) -> Mapping[str, str | None]:
    """Feature → level."""
    client = None if arm.client is None else ("container" if arm.client in DOCKERIZED else arm.client)
    values = (
        None if database is None else FAMILIES.get(database, database), arm.network, arm.storage, arm.engine,
        arm.runtime, client, client_host, baseline.network, baseline.storage, load,
    )  # fmt: skip
    return dict(zip(FEATURES, values, strict=True))


def _distance(one: Point, other: Point, feature: str) -> float:
    """1 where both tell and differ, 0.5 where one of them does not tell; 0 within a study that does not."""
    if feature == STUDY:
        return float(one.study != other.study)
    a, b = one.levels[feature], other.levels[feature]
    if a is None or b is None:
        return 0.0 if a == b and one.study == other.study else 0.5
    return float(a != b)


def _distances(points: Sequence[Point], others: Sequence[Point]) -> Floats:
    """One matrix for each feature and the study."""
    return np.array(
        [
            [[_distance(one, other, name) for other in others] for one in points]
            for name in (*FEATURES, STUDY)
        ]
    )  # fmt: skip


def _covariance(points: Sequence[Point], others: Sequence[Point], spreads: Spreads) -> Floats:
    """Covariance between the effects of two point lists, with the mean's, without settings and errors."""
    d = np.array([spreads.value[name] for name in (*FEATURES, STUDY)])
    apart = np.tensordot(d, _distances(points, others), axes=1)
    covariance: Floats = MEAN_SD**2 + spreads.value[SPREAD] ** 2 * np.exp(-apart)
    return covariance


def learned(claims: Sequence[ClaimFile]) -> Spreads:
    """The spreads that these claims make most probable."""
    from scipy.optimize import minimize  # slow to import

    groups: dict[tuple[str, str, str], list[Point]] = {}
    for known in applicable(claims):
        if (group := group_of(known.claim)) is not None:
            groups.setdefault(group, []).append(point_of(known))
    parts = [
        (
            _distances(points, points),
            np.array([each.y for each in points]),
            np.array([each.variance for each in points]),
        )
        for points in groups.values()
    ]
    names = tuple(TYPICAL)
    middle = np.log(np.array(list(TYPICAL.values())))

    def cost(logs: Floats) -> tuple[float, Floats]:
        values = np.exp(logs)
        d, spread, setting = values[:-2], values[-2] ** 2, values[-1] ** 2
        total = float(np.sum((logs - middle) ** 2)) / (2 * TYPICAL_LOG_SD**2)
        slope = (logs - middle) / TYPICAL_LOG_SD**2
        for distances, y, variance in parts:
            agreed = spread * np.exp(-np.tensordot(d, distances, axes=1))
            inverse = np.linalg.inv(MEAN_SD**2 + agreed + np.diag(variance + setting))
            residual = inverse @ y
            total += float(y @ residual - np.linalg.slogdet(inverse)[1]) / 2
            pull = (inverse - np.outer(residual, residual)) / 2
            by_feature = -d * np.einsum("fij,ij->f", distances, agreed * pull)
            slope = slope + np.array([*by_feature, 2 * np.sum(agreed * pull), 2 * setting * np.trace(pull)])
        return total, slope

    limits = [(float(at) + math.log(_SMALLEST), float(at) + math.log(_LARGEST)) for at in middle]
    best = minimize(cost, middle, method="L-BFGS-B", jac=True, bounds=limits).x
    return Spreads(
        {name: math.exp(float(log)) for name, log in zip(names, best, strict=True)},
        sum(len(points) for points in groups.values()),
    )


def metrics_for(database: str | None, claims: Sequence[ClaimFile]) -> tuple[str, ...]:
    """Metrics that a prior can be given in: those that every workload has, and those known of this database."""
    family = None if database is None else FAMILIES.get(database, database)
    unlike: dict[str, None] = {}
    for known in applicable(claims):
        context, metric = known.claim.context, known.claim.effect.metric
        if context is None or metric is None:
            continue
        own = FAMILIES.get(context.database.name, context.database.name) == family
        if metric in OVERALL or own:
            unlike.setdefault(metric)
    return tuple(unlike)


def prior_of(
    arm: PlannedArm, database: str | None, metric: str, claims: Sequence[ClaimFile], spreads: Spreads
) -> Prior | None:
    """Prior for an arm in a metric; `None` without a database, or without a claim of this metric and contrast."""
    if database is None or database in PROGRAMS:
        return None
    group = (metric, *contrast_of(arm.setup, arm.baseline))
    chosen = [known for known in applicable(claims) if group_of(known.claim) == group]
    if not chosen:
        return None
    target = Point(levels_of(arm.setup, arm.baseline, database, arm.client_host, None), "this one")
    points = [point_of(known) for known in chosen]
    setting = spreads.value[SETTING] ** 2
    within = _covariance(points, points, spreads) + np.diag([each.variance + setting for each in points])
    across = _covariance([target], points, spreads)[0]
    own = float(_covariance([target], [target], spreads)[0, 0]) + setting
    weights = np.linalg.solve(within, across)
    point = float(weights @ np.array([each.y for each in points]))
    reach = NINETY * math.sqrt(max(0.0, own - float(weights @ across)))
    order = sorted(range(len(points)), key=lambda at: -abs(float(weights[at])))
    cited: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Contributor] = {}
    for at in order:
        apart = _apart(points[at], target)
        if abs(float(weights[at])) >= _LEAST_WEIGHT:
            cited.setdefault((chosen[at].study, *apart), Contributor(chosen[at], float(weights[at]), *apart))
    nearest = tuple(cited.values())[:_CITED]
    studies = len({each.study for each in points})
    return Prior(point, point - reach, point + reach, len(points), studies, nearest)


def _apart(point: Point, target: Point) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Features that both tell and that differ; features that the claim does not tell. Nothing of the load."""
    pairs = {name: (point.levels[name], target.levels[name]) for name in FEATURES if name != "load"}
    differs = tuple(name for name, (a, b) in pairs.items() if a is not None and b is not None and a != b)
    return differs, tuple(name for name, (a, b) in pairs.items() if a is None and b is not None)
