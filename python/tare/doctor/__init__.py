"""What a machine can and cannot do for a study, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Result of a check.

    `WARNING`: studies run, but their results suffer. `MISSING`: arms that need it cannot run here, others can.
    `CANNOT`: no study can run here before it is fixed.
    """

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"
    CANNOT = "cannot"


@dataclass(frozen=True)
class Line:
    """One check. `advice`: what to do; `None` if nothing needs to be done."""

    name: str
    verdict: Verdict
    found: str
    advice: str | None = None
    needed_by: str | None = None
    """Who needs what is checked; `None` for a condition that distorts results."""


def ok(name: str, observed: str) -> Line:
    """A check with nothing to do."""
    return Line(name, Verdict.OK, observed)


def warning(name: str, observed: str, advice: str) -> Line:
    """A check with a warning: studies run, but their results suffer."""
    return Line(name, Verdict.WARNING, observed, advice)


def missing(name: str, observed: str, advice: str) -> Line:
    """A check that fails for arms that need it: they cannot run, others can."""
    return Line(name, Verdict.MISSING, observed, advice)


def cannot(name: str, observed: str, advice: str) -> Line:
    """A check that fails: no study can run."""
    return Line(name, Verdict.CANNOT, observed, advice)
