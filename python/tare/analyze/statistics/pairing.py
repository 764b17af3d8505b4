"""Pairs an arm with its baseline, block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tare.analyze.estimate import Dropped
from tare.analyze.metrics import Metric
from tare.analyze.runs import Runs


@dataclass(frozen=True)
class Pairs:
    """Ratios arm/baseline of the blocks that have both, and the blocks that could not be used.

    `resolution`: the widest histogram bucket of the runs used, `None` for metrics that come from no histogram.
    """

    ratios: tuple[tuple[int, float], ...]
    dropped: tuple[Dropped, ...]
    resolution: float | None


def pair(runs: Runs, arm: str, baseline: str, metric: Metric) -> Pairs:
    """Pair by block. A block without a usable value on both sides drops out with its reason, never as 0."""
    ratios: list[tuple[int, float]] = []
    dropped: list[Dropped] = []
    values = runs.values(metric)
    for block in runs.blocks_of(arm):
        below, above = (_value(runs, values, (block, side), metric) for side in (baseline, arm))
        if isinstance(below, str) or isinstance(above, str):
            dropped.append(Dropped(block, " and ".join(why for why in (below, above) if isinstance(why, str))))
        elif otherwise := _otherwise_counted(runs, block, (baseline, arm), metric):
            dropped.append(Dropped(block, " and ".join(otherwise)))
        else:
            ratios.append((block, above / below))
    return Pairs(
        tuple(ratios), tuple(dropped), _resolution(runs, [block for block, _ in ratios], (arm, baseline), metric)
    )


def _value(
    runs: Runs, values: Mapping[tuple[int, str], float | None], place: tuple[int, str], metric: Metric
) -> float | str:
    """A side's value, or why there is none that a ratio can be made of."""
    value = values.get(place)
    if value is not None and value > 0:
        return value
    block, arm = place
    if place not in runs.good:
        return runs.missing(block, arm)
    if value is None:
        return f"{arm} has no {metric.title}"
    return f"{arm} has a {metric.title} of {value:g}"


def _otherwise_counted(runs: Runs, block: int, sides: tuple[str, str], metric: Metric) -> list[str]:
    """Why the two sides' values are not of one kind."""
    if metric.source is None:
        return []
    sources = [metric.source(runs.good[block, side]) for side in sides]
    if len(set(sources)) == 1:
        return []
    return [
        f"{side} was counted by {source or 'nobody knows whom'}"
        for side, source in zip(sides, sources, strict=True)
    ]


def _resolution(runs: Runs, blocks: list[int], arms: tuple[str, str], metric: Metric) -> float | None:
    if not metric.bucketed:
        return None
    known = runs.resolutions(metric)
    resolutions = [known[block, arm] for block in blocks for arm in arms]
    return max((width for width in resolutions if width is not None), default=None)
