"""When a study knows enough: at an interval's width or against a margin, never at a significance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from tare.protocols import sign_flip
from tare.protocols.anytime import NO_SPREAD, reach_factor
from tare.study.protocol_spec import Anytime, Repetition, Sequential

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_BLOCKS_FOR_INTERVAL = 3
"""Blocks below which there is no interval: with two, t has one degree of freedom."""


@dataclass(frozen=True)
class Finished:
    """A finished block: every arm → its throughput, `None` if it has no run there or no usable result.

    `seconds`: machine time of all attempts of its runs. `baselines`: arm → the arm that it is compared with, a
    baseline with itself; empty if all arms share one baseline. `controls`: second instances of a baseline.
    """

    block: int
    throughput_per_s: Mapping[str, float | None]
    seconds: float = 0.0
    baselines: Mapping[str, str] = field(default_factory=dict)
    controls: frozenset[str] = frozenset()


class End(StrEnum):
    """Why no further block starts."""

    TARGET = "target"
    MARGIN = "margin"
    BLOCKS = "blocks"
    TIME = "time"


@dataclass(frozen=True)
class Rule:
    """Stop at the first look at which every arm's interval is narrow enough, or at a cap.

    `target`: half-width of the interval on the relative effect (0.02 is ± 2 %), `None` for none. Looks are at
    `min_blocks` and every `look_every` after that. `alpha`: of the interval at each look; stopping on an interval
    that is narrow by chance reduces coverage, and 0.035 instead of 0.05 compensates. `blocks`, `seconds`: the caps.
    Blocks are counted for each arm; `blocks_each`: how many blocks give every arm one comparison (1; in a duet the
    number of arms beside the baseline). `anytime`: kind of an interval that holds at every look, which then follows
    every block. `margin`: in place of the target, an arm is known once its interval lies within the margin or
    outside of it.
    """

    target: float | None = 0.02
    min_blocks: int = 8
    look_every: int = 4
    alpha: float = 0.035
    blocks: int = 100
    seconds: float | None = None
    blocks_each: int = 1
    anytime: Anytime | None = None
    margin: float | None = None

    @classmethod
    def of(cls, spec: Repetition, blocks_each: int = 1) -> Rule:
        """Return the rule of a study's protocol; protocols that are not sequential have no target."""
        if not isinstance(spec, Sequential):
            return cls(target=None, alpha=0.05, blocks=spec.blocks)
        return cls(
            target=spec.target,
            min_blocks=spec.min_blocks,
            look_every=spec.look_every,
            alpha=0.05 if spec.target is None else spec.alpha,
            blocks=spec.blocks,
            seconds=None if spec.max_minutes is None else 60 * spec.max_minutes,
            blocks_each=blocks_each,
            anytime=spec.anytime if spec.looks == "any" and spec.target is not None else None,
            margin=spec.margin,
        )

    def looks_at(self, blocks: int) -> bool:
        """Whether the target is checked after this number of blocks; at the cap it always is."""
        every = self.look_every if self.anytime is None else 1
        regular = blocks >= self.min_blocks and (blocks - self.min_blocks) % every == 0
        return self.target is not None and (regular or self.min_blocks <= blocks == self.blocks)


@dataclass(frozen=True)
class Progress:
    """State of one arm: its relative effect with the interval so far, `None` before there is one.

    `n`: blocks with both arm and baseline. `half_width`: of the interval. `more_blocks`: expected further blocks.
    """

    n: int
    point: float | None = None
    low: float | None = None
    high: float | None = None
    more_blocks: int | None = None
    known: bool = False
    """Whether the rule asks for no more blocks of the arm, by its interval alone."""

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width, as a fraction of the baseline."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class Decision:
    """What is known after some blocks. `end`: why no further block starts, `None` to continue."""

    blocks: int
    seconds: float
    end: End | None
    arms: Mapping[str, Progress]

    @property
    def more_blocks(self) -> int | None:
        """Expected further blocks for the arm that needs most; `None` while they are unknown for an arm."""
        left = [progress.more_blocks for progress in self.arms.values()]
        known = [blocks for blocks in left if blocks is not None]
        return max(known) if known and len(known) == len(left) else None


def decide(rule: Rule, baseline: str, finished: Sequence[Finished]) -> Decision:
    """Decide after the finished blocks, from their throughputs and seconds alone.

    Fixed-width sequential interval: Chow & Robbins, "On the asymptotic theory of fixed-width sequential confidence
    intervals for the mean", Ann. Math. Statist. 36 (1965): continue while t(n - 1, 1 - alpha/2) · s / √n is too
    wide. That is exact for many blocks only; the simulation in tests/unit/protocols/test_stopping.py shows that at
    least 8 blocks, a look every 4 and alpha 0.035 cover 95 % with few blocks, too. Significance is never
    considered.
    """
    against = dict.fromkeys(set().union(*(block.throughput_per_s for block in finished)), baseline)
    against |= {arm: other for block in finished for arm, other in block.baselines.items()}
    pairs = [(arm, other) for arm, other in sorted(against.items()) if arm != other]
    arms = _Arms(lambda: {arm: _progress(rule, _log_ratios(arm, other, finished)) for arm, other in pairs})
    seconds = sum(block.seconds for block in finished)
    end = _end(rule, len(finished), seconds, lambda: _awaited(rule, arms, finished))

    def shown() -> Mapping[str, Progress]:
        awaited = _awaited(rule, arms, finished)
        return {name: arm if name in awaited else replace(arm, more_blocks=0) for name, arm in arms.items()}

    return Decision(len(finished), seconds, end, _Arms(shown))


class _Arms(Mapping[str, Progress]):
    """Progress of arms, computed on first access: if a cap alone decides, 100 arms' intervals are not needed."""

    def __init__(self, work_out: Callable[[], Mapping[str, Progress]]) -> None:
        self._work_out = work_out

    @cached_property
    def _arms(self) -> Mapping[str, Progress]:
        return self._work_out()

    def __getitem__(self, name: str) -> Progress:
        return self._arms[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arms)

    def __len__(self) -> int:
        return len(self._arms)

    def __repr__(self) -> str:
        return repr(dict(self))


def _awaited(rule: Rule, arms: Mapping[str, Progress], finished: Sequence[Finished]) -> Mapping[str, Progress]:
    """Return the arms that must be known; with a margin, not the control, which guards the others."""
    controls = finished[-1].controls if finished else frozenset()
    others = {name: arm for name, arm in arms.items() if name not in controls}
    return arms if rule.margin is None or not others else others


def _progress(rule: Rule, log_ratios: Mapping[int, float]) -> Progress:
    """Compute what `progress` does from log ratios by block."""
    if rule.anytime != "sign-flip":
        return progress(rule, list(log_ratios.values()))
    found, units = progress(rule, list(log_ratios.values())), sign_flip.mirrored(log_ratios, rule.blocks_each)
    within = None if found.low is None else sign_flip.interval(units)
    if within is None:
        return replace(found, low=None, high=None, known=False)
    point = sign_flip.mean(units)
    at = replace(found, point=math.expm1(point), low=math.expm1(within.low), high=math.expm1(within.high))
    return replace(at, known=True, more_blocks=0) if _known(rule, at) else replace(at, known=False)


def progress(rule: Rule, log_ratios: Sequence[float]) -> Progress:
    """Compute the interval of one arm so far, and the further blocks that it needs if the spread stays the same."""
    import numpy as np

    logs = np.asarray(log_ratios, dtype=float)
    n = len(logs)
    if n == 0:
        return Progress(0)
    mean = float(logs.mean())
    spread = float(logs.std(ddof=1)) if n >= MIN_BLOCKS_FOR_INTERVAL else 0.0
    if spread < NO_SPREAD:
        return Progress(n, math.expm1(mean))
    half = _factor(rule, n) * spread / math.sqrt(n)
    if math.isinf(half):
        return Progress(n, math.expm1(mean))
    needed = blocks_needed(rule, math.expm1(mean), spread, made=n)
    more = None if needed is None else max(0, needed - n)
    found = Progress(n, math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half), more)
    return replace(found, known=_known(rule, found))


def reach(logs: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """t(n - 1, 1 - alpha/2) · s / √n over the last axis: half the t interval of the mean log ratio."""
    n = logs.shape[-1]
    spread: NDArray[np.float64] = logs.std(axis=-1, ddof=1)
    return _t(n, alpha) * spread / math.sqrt(n)


def blocks_needed(rule: Rule, point: float, spread: float, made: int = 0) -> int | None:
    """Return the first look at which half the interval, (1 + point) · sinh(t · spread / √n), is within the target.

    With a margin, the first look at which an interval of that half-width about the point lies within the margin or
    outside. `spread`: standard deviation of the log ratio; `made`: existing blocks. The cap if no earlier look is
    enough; `None` without a target.
    """
    if rule.target is None:
        return None
    for n in range(max(rule.min_blocks, made), rule.blocks):
        half = _factor(rule, n) * spread / math.sqrt(n)
        if rule.looks_at(n) and _would_stop(rule, rule.target, point, half):
            return n
    return rule.blocks


def _would_stop(rule: Rule, target: float, point: float, half: float) -> bool:
    """Whether the rule stops at an interval of `half` on either side of the log of 1 + point."""
    if rule.margin is None:
        return half < 1 and (1 + point) * math.sinh(half) <= target
    bound, away = math.log1p(rule.margin), abs(math.log1p(point))
    return away + half <= bound or away - half >= bound


def _factor(rule: Rule, n: int) -> float:
    """Half the interval in standard errors of the mean; an expectation for sign flips, which are asymmetric."""
    if rule.anytime is None:
        return _t(n, rule.alpha)
    return reach_factor(n) if rule.anytime == "t-mixture" else reach_factor(n // 2)


def _t(n: int, alpha: float) -> float:
    """t(n - 1, 1 - alpha/2)."""
    from scipy.special import stdtrit  # slow to import, and who only reads a rule needs none

    return float(stdtrit(n - 1, 1 - alpha / 2))


def _end(rule: Rule, finished: int, seconds: float, awaited: Callable[[], Mapping[str, Progress]]) -> End | None:
    blocks, begun = divmod(finished, rule.blocks_each)
    if begun:
        return None
    if rule.looks_at(blocks) and (arms := awaited()) and all(one.known for one in arms.values()):
        return End.TARGET if rule.margin is None else End.MARGIN
    if blocks >= rule.blocks:
        return End.BLOCKS
    if rule.seconds is not None and blocks and seconds * (1 + 1 / blocks) > rule.seconds:
        return End.TIME
    return None


def _known(rule: Rule, arm: Progress) -> bool:
    """Whether the interval is narrow enough; with a margin, whether it lies within the margin or outside."""
    if rule.target is None or arm.n < rule.min_blocks or arm.low is None or arm.high is None:
        return False
    if rule.margin is None:
        return (arm.high - arm.low) / 2 <= rule.target
    low, high, bound = math.log1p(arm.low), math.log1p(arm.high), math.log1p(rule.margin)
    return -bound <= low <= high <= bound or low >= bound or high <= -bound


def _log_ratios(arm: str, baseline: str, finished: Sequence[Finished]) -> dict[int, float]:
    """Block → log ratio, for blocks that have both arms."""
    ratios: dict[int, float] = {}
    for one in finished:
        value, reference = one.throughput_per_s.get(arm), one.throughput_per_s.get(baseline)
        if value and reference:
            ratios[one.block] = math.log(value / reference)
    return ratios
