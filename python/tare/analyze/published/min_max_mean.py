"""Smallest, largest, mean and standard deviation of repetitions, as in seybold-2018."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True)
class Repetitions:
    """In the values' unit. `stddev`: of the sample (n - 1), `None` for one repetition."""

    n: int
    smallest: float
    largest: float
    mean: float
    stddev: float | None


def min_max_mean(values: Sequence[float]) -> Repetitions | None:
    """Describe repetitions; `None` without any.

    Seybold et al., "The impact of the storage tier: a baseline performance analysis of containerized DBMS" (2018).
    """
    if not values:
        return None
    return Repetitions(
        n=len(values),
        smallest=min(values),
        largest=max(values),
        mean=fmean(values),
        stddev=stdev(values) if len(values) > 1 else None,
    )
