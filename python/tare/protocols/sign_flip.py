"""An interval of the mean log ratio that holds at every look by the random order of the plan alone.

Blocks come in mirrored pairs: one draw decides whether arm and baseline run as AB BA or as BA AB. If the arm makes
every run slower by the same factor exp(μ), then the other draw would have turned the sign of D - μ, with D the mean
log ratio over both blocks, and left its size alone. So whatever the noise is (skewed, heavy-tailed, drifting), each
D - μ is as likely to be positive as negative, given its size and all that came before. A wager of λ on the sign
pays 1 + tanh(λ (D - μ)) = exp(λ (D - μ)) / cosh(λ (D - μ)), whose mean is 1 for every λ that does not depend on the
sign. With x_i = D_i - μ, s_i² = (x_1² + … + x_i²) / i and a fixed set of effects δ, in standard deviations,

    E_n(μ) = mean over δ of Π_i (1 + tanh(δ x_i / s_i))

is therefore a martingale for the true μ, and one from below and one from above reach 2/alpha with a chance of alpha
at most (Ville). The bet is the log-optimal one of normal noise: the odds of the two signs are then exp(2 δ x / s).

The randomisation test: Fisher, The Design of Experiments (1935), section 21. Symmetry and self-normalised sums:
Efron, "Student's t-test under symmetry conditions", JASA 64 (1969); de la Peña, Ann. Probab. 27 (1999), whose
exp(λx - λ²x²/2) is never above the wager's pay. As a process: Ramdas, Ruf, Larsson & Koolen, arXiv 2009.03167,
section 6; Vovk & Wang, "Nonparametric e-tests of symmetry", New Engl. J. Stat. Data Sci. 2 (2024).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tare.protocols.anytime import ALPHA

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EFFECTS = (0.15, 0.3, 0.5, 0.75, 1.1, 1.6, 2.4)
"""δ: bet on with equal weights. Any fixed set keeps the level; these span what 5 to 200 pairs can show."""
_STEPS = 64
_FAR = 1e6
"""Spreads beyond the data at which the search for an end of the interval begins."""
_HALVINGS = 40


class Interval(NamedTuple):
    """Ends of an interval of the mean log ratio."""

    low: float
    high: float


def mirrored(log_ratios: Mapping[int, float], blocks_each: int = 1) -> list[float]:
    """Mean log ratio of each mirrored pair of blocks, in order; a block without its mirror is left out.

    `log_ratios`: by block, from 1. `blocks_each`: blocks that give every arm one comparison (`Rule.blocks_each`).
    """
    pairs: dict[int, list[float]] = {}
    for block, value in sorted(log_ratios.items()):
        pairs.setdefault((block - 1) // (2 * blocks_each), []).append(value)
    return [(pair[0] + pair[1]) / 2 for pair in pairs.values() if len(pair) == 2]


def log_wealth(stakes: NDArray[np.float64], effects: Sequence[float] = EFFECTS) -> NDArray[np.float64]:
    """Log of the mean over `effects` of Π (1 + tanh(δ z)) up to each place of the last axis; shape as `stakes`.

    `stakes`: z, what each sign is bet on with; to depend on no sign but its own and those before.
    """
    import numpy as np

    paid = [np.cumsum(_paid(stakes, effect), axis=-1) for effect in effects]
    return np.asarray(np.logaddexp.reduce(paid, axis=0) - math.log(len(effects)))


def _paid(stakes: NDArray[np.float64], effect: float) -> NDArray[np.float64]:
    """log(1 + tanh(δ z)) = log 2 - log(1 + exp(-2 δ z)), safe for large stakes."""
    import numpy as np

    return np.asarray(math.log(2) - np.logaddexp(0.0, -2 * effect * stakes))


def stakes_of(away: NDArray[np.float64]) -> NDArray[np.float64]:
    """x_i / s_i over the last axis, and 0 where x is; s from the sizes up to the own, in which there is no sign."""
    import numpy as np

    count = np.arange(1, away.shape[-1] + 1)
    size = np.sqrt(np.cumsum(np.square(away), axis=-1) / count)
    return np.divide(away, size, out=np.zeros_like(away), where=size > 0)


def interval(units: Sequence[float], alpha: float = ALPHA) -> Interval | None:
    """All μ but those that either process rejects, with what lies between; `None` while there are too few units.

    `units`: of `mirrored`. Not always an interval by itself, so each end is the first that is not rejected, coming
    from outside.
    """
    import numpy as np

    values = np.asarray(units, dtype=float)
    if len(values) < 2 or not float(np.ptp(values)) > 0:
        return None
    low = _low_end(values, math.log(2 / alpha))
    high = _low_end(-values, math.log(2 / alpha))
    if low is None or high is None:
        return None
    return Interval(min(low, -high), max(low, -high))  # crossed: no mean fits, as where the effect is not the same


def p_value(units: Sequence[float], mean: float) -> float:
    """That the true mean log ratio is `mean`, whenever one looks: 2 over the larger of the two processes."""
    import numpy as np

    away = np.asarray(units, dtype=float) - mean
    if len(away) == 0:
        return 1.0
    larger = max(float(log_wealth(stakes_of(side))[-1]) for side in (away, -away))
    return min(1.0, 2 * math.exp(-larger))


def _low_end(values: NDArray[np.float64], threshold: float) -> float | None:
    """Where the bet that the mean is higher ends to be won, coming from far below; `None` if none is won."""
    import numpy as np

    spread, least, most = float(np.ptp(values)), float(values.min()), float(values.max())
    below = least - spread * np.geomspace(_FAR, 1e-3, _STEPS)
    means = np.concatenate([below, np.linspace(least, most, 2 * _STEPS)])
    won = _won(values, means) >= threshold
    if not won[0]:
        return None
    first = int(np.argmin(won))  # at the largest value every bet is lost, so there is one
    lost, held = float(means[first]), float(means[first - 1])
    for _ in range(_HALVINGS):
        middle = (lost + held) / 2
        if _won(values, np.asarray([middle]))[0] >= threshold:
            held = middle
        else:
            lost = middle
    return held


def _won(values: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log E of each mean, after all values."""
    import numpy as np

    stakes = stakes_of(values[None, :] - means[:, None])
    paid = [_paid(stakes, effect).sum(axis=-1) for effect in EFFECTS]
    return np.asarray(np.logaddexp.reduce(paid, axis=0) - math.log(len(EFFECTS)))
