"""A stretch of the machine's clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A stretch of CLOCK_MONOTONIC, seconds."""

    began_s: float
    ended_s: float
