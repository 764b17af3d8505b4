"""Contrasts between cells of a factorial design: what is to be added to and taken from what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

Levels = Mapping[str, str]
"""Factor → level."""


@dataclass(frozen=True)
class Step:
    """From one level of a factor to another."""

    factor: str
    level: str
    reference: str


@dataclass(frozen=True)
class Cell:
    """A combination of levels that was made, and its name."""

    name: str
    levels: Levels


def contrast(cells: Sequence[Cell], steps: Sequence[Step]) -> Mapping[str, float]:
    """Name of a cell → its weight: the effect of the steps, averaged over all else; empty where nothing tells it.

    Of no step the mean of all cells; of one the mean difference; of two the mean difference of differences. Only
    those combinations of other levels count under which every cell that the steps lead through was made, so that a
    difference in other factors never gets into it.
    """
    stepping = {step.factor for step in steps}
    by_levels = {frozenset(cell.levels.items()): cell.name for cell in cells}
    groups: list[Mapping[str, float]] = []
    for rest in dict.fromkeys(frozenset(_without(cell.levels, stepping).items()) for cell in cells):
        found = {frozenset({*rest, *corner.items()}): sign for corner, sign in _corners(steps)}
        if all(levels in by_levels for levels in found):
            groups.append({by_levels[levels]: float(sign) for levels, sign in found.items()})
    return {name: sign / len(groups) for group in groups for name, sign in group.items()}


def reference_of(factor: str, level: str, earlier: Sequence[str], made: Sequence[Levels]) -> str | None:
    """The first of the earlier levels that occurs with the same levels of all else; `None` where none does."""
    beside = {each: _beside(factor, each, made) for each in (*earlier, level)}
    return next((other for other in earlier if beside[other] & beside[level]), None)


def _beside(factor: str, level: str, made: Sequence[Levels]) -> set[frozenset[tuple[str, str]]]:
    """The levels of all other factors with which a level occurs."""
    return {frozenset(_without(each, {factor}).items()) for each in made if each[factor] == level}


def _without(levels: Levels, factors: set[str]) -> Levels:
    return {factor: level for factor, level in levels.items() if factor not in factors}


def _corners(steps: Sequence[Step]) -> list[tuple[Levels, int]]:
    """Every choice of level or reference for each step, and its sign: -1 for each reference in it."""
    corners: list[tuple[Levels, int]] = []
    for choice in product((True, False), repeat=len(steps)):
        pairs = list(zip(steps, choice, strict=True))
        levels = {step.factor: step.level if taken else step.reference for step, taken in pairs}
        corners.append((levels, -1 if choice.count(False) % 2 else 1))
    return corners
