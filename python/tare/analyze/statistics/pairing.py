"""Pairing of an arm with its baseline, block by block."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tare.analyze.columns import Column, Flags, Rows, known_values
from tare.analyze.estimate import Dropped
from tare.analyze.metrics import Metric
from tare.analyze.runs import Runs


@dataclass(frozen=True)
class Pairs:
    """Ratios arm/baseline of blocks with both, and the blocks that could not be used.

    `resolution`: widest histogram bucket of the runs used; `None` for metrics without a histogram.
    """

    ratios: tuple[tuple[int, float], ...]
    dropped: tuple[Dropped, ...]
    resolution: float | None


def pair(runs: Runs, arm: str, baseline: str, metric: Metric) -> Pairs:
    """Pair by block. A block without usable values on both sides is dropped with a reason, never counted as 0."""
    blocks = runs.blocks_of(arm)
    sides = [_Side(runs, name, blocks, metric) for name in (baseline, arm)]
    below, above = sides
    usable = (below.values > 0) & (above.values > 0)
    # If no run has the metric, all blocks share one reason.
    both = below.silent & above.silent
    why = dict.fromkeys(np.flatnonzero(both).tolist(), f"{below.no_value} and {above.no_value}")
    for n in np.flatnonzero(~usable & ~both).tolist():
        why[n] = " and ".join(reason for side in sides if (reason := side.why_not(n)))
    if metric.source is not None:
        for n in np.flatnonzero(usable).tolist():
            if mismatch := _source_mismatch(runs, blocks[n], (baseline, arm), metric):
                why[n], usable[n] = " and ".join(mismatch), False
    ratios = (above.values[usable] / below.values[usable]).tolist()
    return Pairs(
        tuple(zip(itertools.compress(blocks, usable.tolist()), ratios, strict=True)),
        tuple(Dropped(blocks[n], why[n]) for n in sorted(why)),
        _resolution(runs, [side.rows[usable] for side in sides], metric),
    )


class _Side:
    """An arm's values of a metric in these blocks; NaN if there is none. `rows`: -1 without a good run.

    `silent`: flags of blocks whose good run has no value; `no_value` is their reason.
    """

    def __init__(self, runs: Runs, arm: str, blocks: tuple[int, ...], metric: Metric) -> None:
        self.rows = runs.rows_in_blocks(arm, blocks)
        self.values: Column = runs.values_at(metric, self.rows)
        self.silent: Flags = np.isnan(self.values) & (self.rows >= 0)
        self.no_value = f"{arm} has no {metric.title}"
        self._runs, self._arm, self._blocks, self._metric = runs, arm, blocks, metric

    def why_not(self, n: int) -> str | None:
        """Why the value in the n-th block gives no ratio; `None` if it does."""
        value = float(self.values[n])
        if value > 0:
            return None
        if self.rows[n] < 0:
            return self._runs.missing(self._blocks[n], self._arm)
        if math.isnan(value):
            return self.no_value
        return f"{self._arm} has a {self._metric.title} of {value:g}"


def _source_mismatch(runs: Runs, block: int, sides: tuple[str, str], metric: Metric) -> list[str]:
    """Why the two sides' values cannot be compared: different sources counted them; empty if they can."""
    if metric.source is None:
        return []
    sources = [metric.source(runs.good[block, side]) for side in sides]
    if len(set(sources)) == 1:
        return []
    return [
        f"{side} was counted by {source or 'nobody knows whom'}"
        for side, source in zip(sides, sources, strict=True)
    ]


def _resolution(runs: Runs, rows: Sequence[Rows], metric: Metric) -> float | None:
    if not metric.bucketed:
        return None
    return max(known_values(runs.resolutions(metric)[np.concatenate(rows)]), default=None)
