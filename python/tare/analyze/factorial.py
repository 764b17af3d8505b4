"""Main effects and two-way interactions of a study with several factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from tare.analyze.estimate import Estimate
from tare.analyze.estimator import CONFIDENCE, paired
from tare.analyze.metrics import Metric
from tare.analyze.runs import Runs, select_runs
from tare.analyze.statistics.intervals import term, welch_t
from tare.protocols.anytime import NO_SPREAD
from tare.protocols.stopping import Rule
from tare.record.emulated import emulated_arms
from tare.record.run_record import RunRecord
from tare.study.model import Study

METHOD = "contrast-of-block-means-welch"


def contrast_of_means(
    groups: Mapping[str, Sequence[float]], weights: Mapping[str, float], confidence: float = 0.95
) -> Estimate | None:
    """Relative effect from logarithms; `None` if a group is empty. `groups`: name → values, one for each block.

    With means m_k and weights w_k: effect = Σ w_k m_k, with error and degrees of freedom by `welch_t`; for two
    groups this is Welch's interval. There is no interval if a group has a single value, or no group any spread.
    """
    values = {name: np.asarray(groups.get(name, ()), dtype=float) for name in weights}
    if not values or any(len(each) == 0 for each in values.values()):
        return None
    n = sum(len(each) for each in values.values())
    point = sum(weight * float(values[name].mean()) for name, weight in weights.items())
    if any(len(each) < 2 for each in values.values()):
        return _without_interval(
            point, n, confidence, "a condition with one block; an interval needs two blocks of each"
        )
    known = welch_t(term(each, weights[name]) for name, each in values.items())
    if known is None or known.error < NO_SPREAD:
        return _without_interval(point, n, confidence, "the same value in every block, so the spread is unknown")
    reach = known.reach(confidence)
    return Estimate(math.expm1(point), math.expm1(point - reach), math.expm1(point + reach), n, confidence, METHOD)


def _without_interval(point: float, n: int, confidence: float, why: str) -> Estimate:
    return Estimate(math.expm1(point), None, None, n, confidence, METHOD, why)


Levels = Mapping[str, str]
"""Factor → level."""


@dataclass(frozen=True)
class Step:
    """A step from one level of a factor, the reference, to another level."""

    factor: str
    level: str
    reference: str


@dataclass(frozen=True)
class Cell:
    """A combination of levels that was run, and its name."""

    name: str
    levels: Levels


def contrast(cells: Sequence[Cell], steps: Sequence[Step]) -> Mapping[str, float]:
    """Weight of each cell for the effect of the steps, averaged over all other factors; empty if no cells show it.

    Without steps: the mean of all cells. One step: the mean difference. Two steps: the mean difference of
    differences. Only combinations of other levels count for which every cell of the steps was run, so that
    differences in other factors never enter the effect.
    """
    stepping = {step.factor for step in steps}
    by_levels = {frozenset(cell.levels.items()): cell.name for cell in cells}
    groups: list[Mapping[str, float]] = []
    for rest in dict.fromkeys(frozenset(_without(cell.levels, stepping).items()) for cell in cells):
        signs = {frozenset({*rest, *corner.items()}): sign for corner, sign in _corners(steps)}
        if all(levels in by_levels for levels in signs):
            groups.append({by_levels[levels]: float(sign) for levels, sign in signs.items()})
    return {name: sign / len(groups) for group in groups for name, sign in group.items()}


def reference_of(factor: str, level: str, earlier: Sequence[str], made: Sequence[Levels]) -> str | None:
    """First earlier level that occurs with the same levels of all other factors; `None` if there is none."""
    contexts = {each: _contexts(factor, each, made) for each in (*earlier, level)}
    return next((other for other in earlier if contexts[other] & contexts[level]), None)


def _contexts(factor: str, level: str, made: Sequence[Levels]) -> set[frozenset[tuple[str, str]]]:
    """Combinations of all other factors' levels with which a level occurs."""
    return {frozenset(_without(each, {factor}).items()) for each in made if each[factor] == level}


def _without(levels: Levels, factors: set[str]) -> Levels:
    return {factor: level for factor, level in levels.items() if factor not in factors}


def _corners(steps: Sequence[Step]) -> list[tuple[Levels, int]]:
    """Every choice of level or reference for each step, with its sign: a factor of -1 for each reference."""
    corners: list[tuple[Levels, int]] = []
    for choice in product((True, False), repeat=len(steps)):
        pairs = list(zip(steps, choice, strict=True))
        levels = {step.factor: step.level if taken else step.reference for step, taken in pairs}
        corners.append((levels, -1 if choice.count(False) % 2 else 1))
    return corners


@dataclass(frozen=True)
class Effect:
    """Effect of a step from one level of a factor to another, or the interaction of two steps.

    One step: relative effect on the metric, averaged over all other factors. Two steps: ratio of the ratios minus
    1; zero if one step has the same effect at both levels of the other factor.
    """

    steps: tuple[Step, ...]
    metric: str
    estimate: Estimate
    within_blocks: bool
    """Whether the effect is paired by block; otherwise blocks of different conditions are compared."""
    emulated: bool = False
    """Whether any arm of the effect ran on an emulated CPU."""

    @property
    def interaction(self) -> bool:
        """Whether the effect is an interaction of two factors."""
        return len(self.steps) > 1


@dataclass(frozen=True)
class _Design:
    """What was run: arms with their levels, and the conditions of each block."""

    study: Study
    runs: Runs
    arms: tuple[Cell, ...]
    conditions: Mapping[int, Levels]
    emulated: frozenset[str]


def factorial(study: Study, records: Sequence[RunRecord], metrics: Sequence[Metric]) -> tuple[Effect, ...]:
    """Estimate main effects, then interactions, in every metric; empty if only one factor varies.

    A block gives one number: the contrast of the logarithms over the arms of an effect, so that what all runs of a
    block have in common cancels out; a block that lacks one of these arms is left out. The numbers of blocks are
    independent, and their mean has a t interval (`paired`). If a condition is part of the effect, blocks of its
    levels are compared (`contrast_of_means`). Contrasts of factorial designs: Montgomery, Design and Analysis of
    Experiments, chapters 5 and 6.
    """
    design = _design(study, select_runs(study, records))
    inner, outer = _steps_between_arms(design), _steps_between_blocks(design)
    if len({step.factor for step in (*inner, *outer)}) < 2:
        return ()
    pairs = [pair for pair in combinations((*inner, *outer), 2) if pair[0].factor != pair[1].factor]
    effects = (
        _effect(design, steps, metric)
        for steps in (*((one,) for one in (*inner, *outer)), *pairs)
        for metric in metrics
    )
    return tuple(effect for effect in effects if effect is not None)


def _design(study: Study, runs: Runs) -> _Design:
    return _Design(
        study=study,
        runs=runs,
        arms=tuple(Cell(arm.name, arm.levels) for arm in study.arms if not arm.control),
        conditions={
            block: {factor: run.levels[factor] for factor in study.conditions}
            for (block, _), run in sorted(runs.good.items())
        },
        emulated=frozenset(emulated_arms(runs.good.values())),
    )


def _steps_between_arms(design: _Design) -> tuple[Step, ...]:
    """Steps between arms."""
    factors = [factor for factor in design.study.factors if factor not in design.study.conditions]
    return tuple(_steps(design.study, factors, [cell.levels for cell in design.arms]))


def _steps_between_blocks(design: _Design) -> tuple[Step, ...]:
    """Steps between blocks."""
    return tuple(_steps(design.study, design.study.conditions, list(design.conditions.values())))


def _steps(study: Study, factors: Sequence[str], made: Sequence[Levels]) -> Iterator[Step]:
    """Yield a step to each level from the first earlier level with the same other levels."""
    for factor in factors:
        for n, level in enumerate(study.factors[factor]):
            reference = reference_of(factor, level, study.factors[factor][:n], made)
            if reference is not None:
                yield Step(factor, level, reference)


def _effect(design: _Design, steps: tuple[Step, ...], metric: Metric) -> Effect | None:
    """Estimate one effect; `None` if no runs show it."""
    inner = [step for step in steps if step.factor not in design.study.conditions]
    outer = [step for step in steps if step.factor in design.study.conditions]
    weights = contrast(design.arms, inner)
    logs = dict(_logs(design, weights, metric))
    emulated = bool(design.emulated & weights.keys())
    if not logs:
        return None
    if not outer:
        estimate = paired(design.study, [math.exp(value) for value in logs.values()], list(logs))
        return Effect(steps, metric.name, estimate, within_blocks=True, emulated=emulated)
    groups: dict[str, list[float]] = {}
    levels: dict[str, Levels] = {}
    for block, value in logs.items():
        name = str(sorted(design.conditions[block].items()))
        groups.setdefault(name, []).append(value)
        levels[name] = design.conditions[block]
    weights = contrast([Cell(name, each) for name, each in levels.items()], outer)
    compared = contrast_of_means(groups, weights, 1 - Rule.of(design.study.protocol).alpha)
    if compared is None:
        return None
    compared = replace(compared, confidence=CONFIDENCE)
    return Effect(steps, metric.name, compared, within_blocks=False, emulated=emulated)


def _logs(design: _Design, weights: Mapping[str, float], metric: Metric) -> Iterator[tuple[int, float]]:
    """Yield (block, contrast of logarithms); skips blocks without a usable value of one of the arms."""
    for block in design.runs.blocks if weights else ():
        runs = {arm: design.runs.good.get((block, arm)) for arm in weights}
        values = {arm: None if run is None else metric.of(run) for arm, run in runs.items()}
        sources = {metric.source(run) for run in runs.values() if run is not None and metric.source is not None}
        if len(sources) > 1:
            continue
        known = {arm: math.log(value) for arm, value in values.items() if value is not None and value > 0}
        if len(known) == len(weights):
            yield block, sum(weights[arm] * value for arm, value in known.items())
