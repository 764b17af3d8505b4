"""An interval of the mean log ratio that holds at every look, from the plan's random order only.

Blocks come in mirrored pairs: one draw decides whether arm and baseline run as AB BA or as BA AB. If the arm makes
every run slower by the same factor exp(μ), then the other draw would have flipped the sign of D - μ, with D the
mean log ratio over both blocks, and kept its size. So whatever the noise is (skewed, heavy-tailed, drifting), each
D - μ is as likely to be positive as negative, given its size and everything before it. A bet of λ on the sign pays
1 + tanh(λ (D - μ)) = exp(λ (D - μ)) / cosh(λ (D - μ)), whose mean is 1 for every λ that does not depend on the
sign. With x_i = D_i - μ, s_i² = (x_1² + … + x_i²) / i and a fixed set of effects δ, in standard deviations,

    E_n(μ) = mean over δ of Π_i (1 + tanh(δ x_i / s_i))

is therefore a martingale for the true μ; one from below and one from above reach 2/alpha with a probability of at
most alpha (Ville). The bet is log-optimal for normal noise: the odds of the two signs are then exp(2 δ x / s).

The randomisation test: Fisher, The Design of Experiments (1935), section 21. Symmetry and self-normalised sums:
Efron, "Student's t-test under symmetry conditions", JASA 64 (1969); de la Peña, Ann. Probab. 27 (1999), whose
exp(λx - λ²x²/2) never exceeds the payoff of the bet. As a process: Ramdas, Ruf, Larsson & Koolen, arXiv 2009.03167,
section 6; Vovk & Wang, "Nonparametric e-tests of symmetry", New Engl. J. Stat. Data Sci. 2 (2024).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from tare.protocols.anytime import ALPHA, NO_SPREAD, spreads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EFFECTS = (0.15, 0.3, 0.5, 0.75, 1.1, 1.6, 2.4)
"""δ: effects bet on with equal weights. Any fixed set keeps the level; these cover what 5 to 200 pairs can show."""
_STEPS = 64
_FAR = 1e6
"""Where the search for an end of the interval starts, in spreads beyond the data."""
_HALVINGS = 40


class Interval(NamedTuple):
    """Ends of an interval of the mean log ratio."""

    low: float
    high: float


def mirrored(log_ratios: Mapping[int, float], blocks_each: int = 1) -> list[float]:
    """Return the mean log ratio of each mirrored pair of blocks, in order; blocks without a mirror are left out.

    `log_ratios`: by block, from 1. `blocks_each`: blocks that give every arm one comparison (`Rule.blocks_each`).
    """
    pairs: dict[int, list[float]] = {}
    for block, value in sorted(log_ratios.items()):
        pairs.setdefault((block - 1) // (2 * blocks_each), []).append(value)
    return [(pair[0] + pair[1]) / 2 for pair in pairs.values() if len(pair) == 2]


def log_wealth(stakes: NDArray[np.float64], effects: Sequence[float] = EFFECTS) -> NDArray[np.float64]:
    """Return the log of the mean over `effects` of Π (1 + tanh(δ z)) up to each place of the last axis.

    `stakes`: z, the stake on each sign; must not depend on signs other than its own and earlier ones. The result
    has the same shape.
    """
    import numpy as np

    paid = [np.cumsum(_paid(stakes, effect), axis=-1) for effect in effects]
    return np.asarray(np.logaddexp.reduce(paid, axis=0) - math.log(len(effects)))


def _paid(stakes: NDArray[np.float64], effect: float) -> NDArray[np.float64]:
    """log(1 + tanh(δ z)) = log 2 - log(1 + exp(-2 δ z)), safe for large stakes."""
    import numpy as np

    return np.asarray(math.log(2) - np.logaddexp(0.0, -2 * effect * stakes))


def stakes_of(away: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x_i / s_i over the last axis; s from the sizes up to the own one, which carry no sign.

    0 while all sizes are rounding errors, whose signs are not random.
    """
    import numpy as np

    count = np.arange(1, away.shape[-1] + 1)
    size = np.sqrt(np.cumsum(np.square(away), axis=-1) / count)
    return np.divide(away, size, out=np.zeros_like(away), where=size >= NO_SPREAD)


def interval(units: Sequence[float], alpha: float = ALPHA) -> Interval | None:
    """Return the interval of all μ that neither process rejects; `None` while there are too few units.

    `units`: from `mirrored`; also `None` if they do not spread. The set is not always an interval, so each end is
    the first value not rejected, coming from outside. The interval always holds the mean of the units, which one
    outlier may move to where the bets on all others reject it.
    """
    import numpy as np

    if not spreads(units):
        return None
    values = np.asarray(units, dtype=float)
    low = _low_end(values, math.log(2 / alpha))
    high = _low_end(-values, math.log(2 / alpha))
    if low is None or high is None:
        return None
    # Crossed ends: no mean fits, as if the effect is not constant.
    ends = (low, -high, mean(units))
    return Interval(min(ends), max(ends))


def mean(units: Sequence[float]) -> float:
    """Return the point estimate of the interval."""
    return math.fsum(units) / len(units)


def p_value(units: Sequence[float], truth: float) -> float:
    """Return the p-value of a true mean log ratio of `truth` or farther from the units' mean, valid at any look."""
    return p_value_beyond(units, truth, -1) if truth < mean(units) else p_value_beyond(units, truth, 1)


def p_value_beyond(units: Sequence[float], bound: float, side: Literal[-1, 1]) -> float:
    """Return the p-value of a true mean log ratio at or beyond `bound`: below it for side -1, above it for 1.

    Valid at any look. 2 over the payoff of the bets from that side, at the mean beyond the bound that they reject
    least: one outlier can move the mean inside a bound that most pairs lie beyond, and then the bets from the other
    side win. 1 if the units' mean itself lies beyond the bound.
    """
    import numpy as np

    values, end = -side * np.asarray(units, dtype=float), -side * bound  # the tested mean is `end` or less
    if not spreads(units) or -side * mean(units) <= end:
        return 1.0
    spread, least = float(np.ptp(values)), float(values.min())
    inside = np.linspace(min(least, end), end, 2 * _STEPS)
    below = inside[0] - spread * np.geomspace(_FAR, 1e-3, _STEPS)
    return min(1.0, 2 * math.exp(-float(_log_payoff(values, np.concatenate([below, inside])).min())))


def _low_end(values: NDArray[np.float64], threshold: float) -> float | None:
    """Return the mean up to which bets on a higher mean are won, coming from far below; `None` if none is won."""
    import numpy as np

    spread, least, most = float(np.ptp(values)), float(values.min()), float(values.max())
    below = least - spread * np.geomspace(_FAR, 1e-3, _STEPS)
    means = np.concatenate([below, np.linspace(least, most, 2 * _STEPS)])
    won = _log_payoff(values, means) >= threshold
    if not won[0]:
        return None
    first = int(np.argmin(won))  # there is one, since at the largest value every bet is lost
    lost, held = float(means[first]), float(means[first - 1])
    for _ in range(_HALVINGS):
        middle = (lost + held) / 2
        if _log_payoff(values, np.asarray([middle]))[0] >= threshold:
            held = middle
        else:
            lost = middle
    return held


def _log_payoff(values: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log E of each mean, after all values."""
    import numpy as np

    stakes = stakes_of(values[None, :] - means[:, None])
    paid = [_paid(stakes, effect).sum(axis=-1) for effect in EFFECTS]
    return np.asarray(np.logaddexp.reduce(paid, axis=0) - math.log(len(EFFECTS)))
