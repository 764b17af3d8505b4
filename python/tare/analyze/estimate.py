"""A value with its uncertainty, and the finding made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A relative effect as a fraction (-0.58 is -58 %), with the interval that belongs to it.

    `low` and `high` are `None` where `n` is too small for an interval; `why` then says so.
    """

    point: float | None
    low: float | None
    high: float | None
    n: int
    """Number of independent units behind it: blocks, never windows."""
    confidence: float
    method: str
    why: str | None = None


@dataclass(frozen=True)
class Finding:
    """One arm against its baseline in one metric, with the published figure beside it."""

    study: str
    arm: str
    levels: Mapping[str, str]
    baseline: str
    metric: str
    estimate: Estimate
    published: float | None
    """The published relative effect, a fraction."""
    blocks: tuple[tuple[int, float], ...]
    """(block, relative effect in that block): the points behind the estimate."""
