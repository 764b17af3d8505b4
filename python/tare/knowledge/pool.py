"""Summaries of comparable claims, as far as these allow: a range, a pooled effect, or one with moderators."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tare.errors import StudyError
from tare.knowledge.claim import Between, ClaimFile, Measured
from tare.knowledge.comparable import key_of

Floats = NDArray[np.float64]
CONFIDENCE = 0.95


FEWEST = 5
"""Fewest weighted claims to pool."""
WITH_MODERATORS = 10
"""Fewest claims for moderators; one coefficient for every ten claims."""


@dataclass(frozen=True)
class Pooled:
    """A pooled log ratio. `low`, `high`: of the mean; `predicted_*`: of the next such effect, approximate.

    `tau2`: variance between effects; `k`: how many; `moderators`: name → (coefficient, low, high).
    """

    point: float
    low: float
    high: float
    predicted_low: float
    predicted_high: float
    tau2: float
    k: int
    moderators: tuple[tuple[str, float, float, float], ...] = ()


def random_effects(effects: Sequence[float], errors: Sequence[float], tau2: float | None = None) -> Pooled:
    """Pool at least three `effects` with standard errors `errors`. `tau2`: given, or else estimated."""
    y, variance = np.asarray(effects, dtype=float), np.asarray(errors, dtype=float) ** 2
    design = np.ones((len(y), 1))
    return _pooled(y, variance, design, residual_tau2(y, variance, design) if tau2 is None else tau2, ())


def with_moderators(
    effects: Sequence[float],
    errors: Sequence[float],
    names: Sequence[str],
    columns: Sequence[Sequence[float]],
    tau2: float | None = None,
) -> Pooled:
    """Meta-regression on centred moderators (`told_apart`), so that the point is the effect at their mean."""
    y, variance = np.asarray(effects, dtype=float), np.asarray(errors, dtype=float) ** 2
    centred = [np.asarray(column, dtype=float) - float(np.mean(column)) for column in columns]
    design = np.column_stack([np.ones(len(y)), *centred])
    return _pooled(y, variance, design, residual_tau2(y, variance, design) if tau2 is None else tau2, tuple(names))


def distinguishable(columns: Sequence[Sequence[float]]) -> bool:
    """Whether each moderator has its own coefficient: none is a combination of a constant and the others."""
    design = np.column_stack([np.ones(len(columns[0])), *columns])
    return bool(np.linalg.matrix_rank(design) == design.shape[1])


def residual_tau2(y: Floats, variance: Floats, design: Floats) -> float:
    """Return Paule and Mandel's variance: weighted squared residuals sum to the degrees of freedom; at least 0.

    Their sum falls with the variance, so there is a single root, which is bracketed. Not by `combine_effects` of
    statsmodels 0.15: it approaches the root from below, and returns 0 whenever rounding takes its last step just
    beyond.
    """
    from scipy.optimize import brentq  # slow to import, and `tare plan` seldom pools anything

    free = len(y) - design.shape[1]
    excess: Callable[[float], float] = lambda tau2: _fit(y, variance, design, tau2)[2] - free  # noqa: E731 - a name for its type
    if excess(0.0) <= 0:
        return 0.0
    high = float(np.var(y)) + 1e-9
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=1e-14))


def _fit(y: Floats, variance: Floats, design: Floats, tau2: float) -> tuple[Floats, Floats, float]:
    """Return coefficients, their covariance for known variances, and the weighted sum of squared residuals."""
    weights = 1 / (variance + tau2)
    root = np.sqrt(weights)
    coefficients: Floats = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0].astype(np.float64)
    covariance: Floats = np.linalg.inv(design.T @ (weights[:, None] * design)).astype(np.float64)
    residual = y - design @ coefficients
    return coefficients, covariance, float(weights @ residual**2)


def _pooled(y: Floats, variance: Floats, design: Floats, tau2: float, names: tuple[str, ...]) -> Pooled:
    k, parameters = design.shape
    coefficients, covariance, q = _fit(y, variance, design, tau2)
    factor = max(1.0, q / (k - parameters))  # the modification: never below 1
    errors = np.sqrt(factor * np.diag(covariance))
    t = float(stdtrit(k - parameters, 0.5 + CONFIDENCE / 2))
    point, error = float(coefficients[0]), float(errors[0])
    wide = float(stdtrit(k - parameters - 1, 0.5 + CONFIDENCE / 2)) * math.sqrt(tau2 + error**2)
    effects = tuple(
        (name, float(b), float(b - t * e), float(b + t * e))
        for name, b, e in zip(names, coefficients[1:], errors[1:], strict=True)
    )
    return Pooled(point, point - t * error, point + t * error, point - wide, point + wide, tau2, k, effects)


@dataclass(frozen=True)
class Pool:
    """Claims of one key. `listed`: all; `weighted`: those behind an interval, if there is one.

    `low`, `high`: over the listed claims, log ratios. `size_only`: a source gives no sign. `why`: why it is not
    pooled.
    """

    listed: tuple[ClaimFile, ...]
    weighted: tuple[ClaimFile, ...]
    low: float
    high: float
    size_only: bool
    effect: Pooled | None
    why: str | None

    @property
    def studies(self) -> tuple[str, ...]:
        """Studies of the weighted claims if they are pooled, else of the listed ones."""
        return tuple(dict.fromkeys(known.study for known in (self.weighted if self.effect else self.listed)))

    @property
    def unreported(self) -> Mapping[str, int]:
        """Parts of the key that listed claims do not state, each with the number of these claims."""
        keys = [key for known in self.listed if (key := key_of(known.claim)) is not None]
        return Counter(name for key in keys for name in key.unreported)

    @property
    def own(self) -> tuple[float, float] | None:
        """The outermost ends of the weighted claims' own 95 % t intervals."""
        ends = [end for known in self.weighted for end in _own_interval(known)]
        return (min(ends), max(ends)) if ends else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of plausible effects: the prediction interval, else the range of the claims."""
        if self.effect is None:
            return (-self.high, self.high) if self.size_only else (self.low, self.high)
        return self.effect.predicted_low, self.effect.predicted_high


def pool(claims: Sequence[ClaimFile]) -> Pool | None:
    """Summarise claims; `None` without any. Ignores averages of other claims and weak sources.

    Raises where the keys clash.
    """
    counted = tuple(
        known
        for known in claims
        if known.claim.how.summary_of is None and not known.claim.source.weak and _ends(known)
    )
    if not counted:
        return None
    _refuse_mixture(counted)
    ends = [end for known in counted for end in _ends(known)]
    weighted = tuple(known for known in counted if weighs(known))
    size_only = any(isinstance(known.claim.effect, Between) and known.claim.effect.absolute for known in counted)
    effect = _pool_claims(weighted) if len(weighted) >= FEWEST else None
    why = None if effect else f"{len(weighted)} of {len(counted)} with a standard error, {FEWEST} are needed"
    return Pool(counted, weighted, min(ends), max(ends), size_only, effect, why)


def weighs(known: ClaimFile) -> bool:
    """Whether a claim may have a weight: it is a figure with a standard error, and its parity is not broken.

    A median with unknown parity has no weight, even with a standard error.
    """
    claim, key = known.claim, key_of(known.claim)
    if not isinstance(claim.effect, Measured) or claim.effect.se is None or key is None or not key.whole:
        return False
    if claim.source.weak:
        return False
    return claim.how.parity == "known" or (claim.how.parity == "unknown" and claim.how.statistic == "mean")


def _ends(known: ClaimFile) -> tuple[float, ...]:
    effect = known.claim.effect
    if isinstance(effect, Measured):
        return (effect.log_ratio,)
    if isinstance(effect, Between):
        return tuple(end for end in (effect.low, effect.high) if end is not None)
    return ()


def _own_interval(known: ClaimFile) -> tuple[float, ...]:
    effect = known.claim.effect
    reach = half_width(effect) if isinstance(effect, Measured) else None
    return (
        ()
        if reach is None or not isinstance(effect, Measured)
        else (effect.log_ratio - reach, effect.log_ratio + reach)
    )


def half_width(effect: Measured) -> float | None:
    """Half-width of a figure's 95 % t interval, a log ratio; `None` without a standard error from two units."""
    if effect.se is None or effect.n is None or effect.n < 2:
        return None
    return float(stdtrit(effect.n - 1, 0.5 + CONFIDENCE / 2)) * effect.se


def _refuse_mixture(claims: Sequence[ClaimFile]) -> None:
    keys = [(known.id, key) for known in claims if (key := key_of(known.claim)) is not None]
    for one, key in keys[1:]:
        first, reference = keys[0]
        if clash := reference.differences(key):
            raise StudyError(
                f"the claims {first} and {one} differ in {', '.join(clash)}", hint="they are not pooled"
            )


def _pool_claims(weighted: Sequence[ClaimFile]) -> Pooled:
    effects = [known.claim.effect for known in weighted]
    figures = [(each.log_ratio, each.se) for each in effects if isinstance(each, Measured) and each.se is not None]
    points, errors = [point for point, _ in figures], [error for _, error in figures]
    if len(weighted) < WITH_MODERATORS:
        return random_effects(points, errors)
    names, columns = _moderators(weighted)
    return with_moderators(points, errors, names, columns) if names else random_effects(points, errors)


def _moderators(weighted: Sequence[ClaimFile]) -> tuple[list[str], list[list[float]]]:
    """Return indicators of load level, database and operation, at most one coefficient for every ten claims.

    Skips an indicator that earlier ones determine, since their effects could not be separated.
    """
    names: list[str] = []
    columns: list[list[float]] = []
    for moderator in ("level", "database", "operation"):
        values = [_value(known, moderator) for known in weighted]
        levels = sorted({value for value in values if value is not None})
        if None in values or len(levels) < 2 or min(values.count(level) for level in levels) < 2:
            continue
        if len(names) + len(levels) - 1 > len(weighted) // WITH_MODERATORS:
            continue
        indicators = [[float(value == level) for value in values] for level in levels[1:]]
        if not distinguishable([*columns, *indicators]):
            continue
        names += [f"{moderator}: {level} against {levels[0]}" for level in levels[1:]]
        columns += indicators
    return names, columns


def _value(known: ClaimFile, moderator: str) -> str | None:
    context = known.claim.context
    if context is None:
        return None
    return {
        "level": context.load.level, "database": context.database.name, "operation": context.load.operation
    }[moderator]  # fmt: skip
