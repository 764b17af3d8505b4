"""When a study knows enough: at a width, never at a significance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from tare.analyze.estimate import Estimate
from tare.analyze.paired_t import paired_log_ratio_t


@dataclass(frozen=True)
class Rule:
    """Stop at the first look at which every arm's interval is narrow enough.

    `target`: half-width of the interval on the relative effect (0.02 is ± 2 %). Looks at `first_look` rounds and
    every `look_every` after that. `alpha`: of the interval at each look; stopping on one narrow by luck costs
    coverage, and 0.035 instead of 0.05 pays for it. `most_rounds`: the cap.
    """

    target: float = 0.02
    first_look: int = 8
    look_every: int = 4
    alpha: float = 0.035
    most_rounds: int = 100

    def looks_at(self, rounds: int) -> bool:
        """Whether the data may be looked at after so many rounds; at the cap it always is."""
        regular = rounds >= self.first_look and (rounds - self.first_look) % self.look_every == 0
        return regular or rounds == self.most_rounds


@dataclass(frozen=True)
class Progress:
    """How far one arm is. `half_width` of its interval; `rounds_left` by the present spread, `None` before one."""

    estimate: Estimate
    half_width: float | None
    rounds_left: int | None


@dataclass(frozen=True)
class Decision:
    """Whether to stop after this round. `reached`: every arm has its width; else `why` names the cap."""

    stop: bool
    reached: bool
    why: str
    arms: Mapping[str, Progress]


def decide(rule: Rule, rounds: int, ratios: Mapping[str, Sequence[float]]) -> Decision:
    """Decide after `rounds` rounds; `ratios`: arm → its ratios to the baseline, of the rounds that have both.

    Fixed-width sequential interval: Chow & Robbins, "On the asymptotic theory of fixed-width sequential confidence
    intervals for the mean", Ann. Math. Statist. 36 (1965). With a smallest n of 8, looks every 4 rounds and alpha
    0.035 it covers 95.1 % in simulation (95.6 to 96.2 % with heavy tails) for 1.26 times the rounds.
    """
    arms = {arm: progress(rule, values) for arm, values in ratios.items()}
    narrow = [one.half_width is not None and one.half_width <= rule.target for one in arms.values()]
    if rule.looks_at(rounds) and narrow and all(narrow):
        return Decision(stop=True, reached=True, why=f"every arm is known to ±{100 * rule.target:g} %", arms=arms)
    if rounds >= rule.most_rounds:
        return Decision(
            stop=True, reached=False, why=f"the cap of {rule.most_rounds} rounds was reached", arms=arms
        )
    return Decision(stop=False, reached=False, why="", arms=arms)


def progress(rule: Rule, ratios: Sequence[float]) -> Progress:
    """The interval of one arm so far, and the rounds that it still needs if the spread stays what it is."""
    estimate = paired_log_ratio_t(ratios, 1 - rule.alpha)
    if estimate.low is None or estimate.high is None or estimate.point is None:
        return Progress(estimate, None, None)
    spread = float(np.log(np.asarray(ratios, dtype=float)).std(ddof=1))
    half = (estimate.high - estimate.low) / 2
    return Progress(estimate, half, max(0, rounds_needed(rule, estimate.point, spread) - len(ratios)))


def rounds_needed(rule: Rule, point: float, spread: float) -> int:
    """The first look at which half the interval, (1 + point) · sinh(t · spread / √n), is within the target."""
    for rounds in range(rule.first_look, rule.most_rounds):
        reach = float(stdtrit(rounds - 1, 1 - rule.alpha / 2)) * spread / math.sqrt(rounds)
        if rule.looks_at(rounds) and (1 + point) * math.sinh(reach) <= rule.target:
            return rounds
    return rule.most_rounds
