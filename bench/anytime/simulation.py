"""Intervals that hold at every look, in simulation: how often one ever leaves the truth out, and what they cost.

The machine is that of tests/unit/protocols/test_coverage.py: a start of a server scatters by 1.5 %, a run's windows
by 1.2 %, so that log ratios scatter by 2.7 % from block to block. Every noise has mean 0 and, drift aside, that
spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from tare.calibrate.pooled import Share, share
from tare.protocols import sign_flip
from tare.protocols.anytime import ALPHA, reach_factor
from tare.protocols.stopping import Rule, reach
from tare.study.protocol_spec import InterleaveSpec

Logs = NDArray[np.float64]
"""Log ratios: a study a row, a block a column."""
Noise = Callable[[np.random.Generator, int, int], Logs]
"""Generator, studies and blocks (an even number) → what is added to the true log ratio."""

RUN = math.hypot(0.015, 0.012)
SPREAD = math.sqrt(2) * RUN
DRIFT, MEMORY = 0.03, 0.9
FIRST_LOOK, LAST_LOOK = 4, 200


def normal(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """Runs by the normal distribution."""
    return rng.normal(0, SPREAD, (studies, blocks))


def heavy_tailed(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """Log ratios by t with 3 degrees of freedom."""
    return rng.standard_t(3, (studies, blocks)) * SPREAD / math.sqrt(3)


def _log_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Logs:
    """Skewed to the right, of mean 0 and variance 1."""
    return (rng.lognormal(0, 1, shape) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)


def skewed(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """Runs of both arms are log-normal, so that log ratios are symmetric."""
    runs = _log_normal(rng, (2, studies, blocks)) * RUN
    return np.asarray(runs[0] - runs[1])


def skewed_arm(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """Log ratios themselves are log-normal: the arm has a tail that the baseline has not. No effect is the same."""
    return _log_normal(rng, (studies, blocks)) * SPREAD


def drifting(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """The machine drifts from run to run (AR(1), 0.9, 3 %), in the mirrored order that was drawn."""
    drift = _autoregressive(rng, (studies, 2 * blocks), MEMORY, DRIFT).reshape(studies, blocks, 2)
    runs = drift + rng.normal(0, RUN, drift.shape)
    return np.asarray((runs[:, :, 0] - runs[:, :, 1]) * _first(rng, studies, blocks))


def steady(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """Each run is half a percent slower than the one before."""
    return normal(rng, studies, blocks) + 0.005 * _first(rng, studies, blocks)


def correlated(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """The effect itself wanders: neighbouring log ratios correlate by 0.3. No interval here allows for that."""
    return _autoregressive(rng, (studies, blocks), 0.3, SPREAD)


def _autoregressive(rng: np.random.Generator, shape: tuple[int, int], memory: float, spread: float) -> Logs:
    shocks = rng.normal(0, spread * math.sqrt(1 - memory**2), shape)
    shocks[:, 0] = rng.normal(0, spread, shape[0])
    return np.asarray(lfilter([1.0], [1.0, -memory], shocks, axis=1))


def _first(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """1 where the arm runs first, -1 where the baseline does; drawn for each pair of blocks."""
    first = np.repeat(rng.integers(0, 2, (studies, blocks // 2)) * 2.0 - 1, 2, axis=1)
    first[:, 1::2] *= -1
    return np.asarray(first)


NOISES: Mapping[str, Noise] = {
    "normal": normal,
    "heavy tails (t, 3)": heavy_tailed,
    "skewed starts of both": skewed,
    "drift from run to run (AR(1), 0.9)": drifting,
    "steady drift": steady,
    "skewed log ratios": skewed_arm,
    "log ratios AR(1), 0.3": correlated,
}


def by_t(logs: Logs) -> Iterator[NDArray[np.bool_]]:
    """Whether a 95 % t interval leaves 0 out after each number of blocks from `FIRST_LOOK`, a study a row."""
    for n in range(FIRST_LOOK, logs.shape[1] + 1):
        yield np.abs(logs[:, :n].mean(axis=1)) > reach(logs[:, :n], ALPHA)


def by_t_mixture(logs: Logs) -> Iterator[NDArray[np.bool_]]:
    """As `by_t`, of `tare.protocols.anytime`."""
    for n in range(FIRST_LOOK, logs.shape[1] + 1):
        error = logs[:, :n].std(axis=1, ddof=1) / math.sqrt(n)
        yield np.abs(logs[:, :n].mean(axis=1)) > reach_factor(n) * error


def by_sign_flip(logs: Logs) -> Iterator[NDArray[np.bool_]]:
    """As `by_t`, of `tare.protocols.sign_flip`: it only changes with the second block of a pair."""
    yield from (_rejected(units_of(logs)) >= math.log(2 / ALPHA)).T


def units_of(logs: Logs) -> Logs:
    """Means of mirrored pairs of blocks."""
    return np.asarray(logs.reshape(len(logs), -1, 2).mean(axis=2))


def _rejected(away: Logs) -> Logs:
    """Log of the larger of the two processes after each unit."""
    sides = (sign_flip.log_wealth(sign_flip.stakes_of(side)) for side in (away, -away))
    return np.maximum(*sides)


METHODS: Mapping[str, Callable[[Logs], Iterator[NDArray[np.bool_]]]] = {
    "t at every look": by_t,
    "t-mixture": by_t_mixture,
    "sign-flip": by_sign_flip,
}


@dataclass(frozen=True)
class Ever:
    """Studies whose interval left the truth out at any look at all; 5 % at most is what is promised."""

    noise: str
    method: str
    wrong: Share


def ever_wrong(studies: int, seed: int, blocks: int = LAST_LOOK) -> Iterator[Ever]:
    """Every noise by every method, looked at after each block from 4 to `blocks`."""
    for number, (noise, make) in enumerate(NOISES.items()):
        logs = make(np.random.default_rng([seed, number]), studies, blocks)
        for method, outside in METHODS.items():
            wrong = np.zeros(studies, dtype=bool)
            for look in outside(logs):
                wrong |= look
            yield Ever(noise, method, share(int(wrong.sum()), studies))


@dataclass(frozen=True)
class Taken:
    """Blocks in the mean until a study of one arm ended.

    `right`: studies that had an interval then, and one that held the truth.
    """

    goal: str
    effect: float
    method: str
    blocks: float
    capped: float
    right: Share


SPECS: Mapping[str, InterleaveSpec] = {
    "today's rule": InterleaveSpec(),
    "t-mixture": InterleaveSpec(looks="any"),
    "sign-flip": InterleaveSpec(looks="any", anytime="sign-flip"),
}


def taken_to_width(
    target: float, studies: int, seed: int, cap: int = 200, noise: Noise = normal
) -> Iterator[Taken]:
    """By each method, until half the interval is within `target`; no effect."""
    logs = noise(np.random.default_rng([seed, round(1e4 * target)]), studies, cap)
    for method, spec in SPECS.items():
        rule = Rule.of(spec.model_copy(update={"blocks": cap, "target": target}))
        ends = [_ended(rule, row) for row in logs]
        yield _taken(f"± {100 * target:g} %", 0.0, method, ends, cap)


def taken_to_margin(margin: float, effect: float, studies: int, seed: int, cap: int = 200) -> Iterator[Taken]:
    """By either anytime method, until the interval is within the margin or outside. `effect`: true, relative."""
    logs = normal(np.random.default_rng([seed, round(1e4 * (1 + effect))]), studies, cap) + math.log1p(effect)
    for method in ("t-mixture", "sign-flip"):
        spec = SPECS[method].model_copy(update={"blocks": cap, "margin": margin})
        ends = [_ended(Rule.of(spec), row) for row in logs]
        yield _taken(f"within ± {100 * margin:g} % or outside", effect, method, ends, cap)


@dataclass(frozen=True)
class _End:
    """No `low` and no `high` where there was no interval yet."""

    blocks: int
    low: float | None = None
    high: float | None = None

    def holds(self, truth: float) -> bool:
        """What has no interval says nothing, and so nothing right."""
        return self.low is not None and self.high is not None and self.low <= truth <= self.high


def _ended(rule: Rule, logs: NDArray[np.float64]) -> _End:
    """One study as the rule runs it, by the intervals of the code."""
    for n in (n for n in range(1, len(logs) + 1) if rule.looks_at(n)):
        interval = _interval(rule, logs[:n])
        if interval is not None and (_does(rule, interval.low, interval.high) or n == len(logs)):
            return _End(n, interval.low, interval.high)
    return _End(len(logs))


def _interval(rule: Rule, logs: NDArray[np.float64]) -> sign_flip.Interval | None:
    n, mean = len(logs), float(logs.mean())
    if rule.anytime == "sign-flip":
        if n % 2:
            return None  # as after the block before
        return sign_flip.interval(logs.reshape(-1, 2).mean(axis=1).tolist())
    factor = reach_factor(n) / math.sqrt(n) if rule.anytime else 0.0
    half = factor * float(logs.std(ddof=1)) if rule.anytime else float(reach(logs, rule.alpha))
    return None if math.isinf(half) else sign_flip.Interval(mean - half, mean + half)


def _does(rule: Rule, low: float, high: float) -> bool:
    if rule.margin is None:
        return (math.expm1(high) - math.expm1(low)) / 2 <= (rule.target or 0.0)
    bound = math.log1p(rule.margin)
    return -bound <= low <= high <= bound or low >= bound or high <= -bound


def _taken(goal: str, effect: float, method: str, ends: Sequence[_End], cap: int) -> Taken:
    truth = math.log1p(effect)
    return Taken(
        goal,
        effect,
        method,
        blocks=sum(end.blocks for end in ends) / len(ends),
        capped=sum(end.blocks >= cap for end in ends) / len(ends),
        right=share(sum(end.holds(truth) for end in ends), len(ends)),
    )
