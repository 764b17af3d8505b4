"""Analysis: from run records to estimates. Pure functions without output."""

from __future__ import annotations

from tare.analyze.analysis import Analysis, analyze
from tare.analyze.estimate import Dropped, Estimate, Finding

__all__ = ["Analysis", "Dropped", "Estimate", "Finding", "analyze"]
