"""What a machine can and cannot do for a study, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Result of a check. `CANNOT`: a study with bare and container arms cannot run here before it is fixed."""

    OK = "ok"
    WARNING = "warning"
    CANNOT = "cannot"


@dataclass(frozen=True)
class Line:
    """One check. `advice`: what to do; `None` if nothing needs to be done."""

    name: str
    verdict: Verdict
    found: str
    advice: str | None = None


def ok(name: str, observed: str) -> Line:
    """A check with nothing to do."""
    return Line(name, Verdict.OK, observed)


def warning(name: str, observed: str, advice: str) -> Line:
    """A check with a warning: studies run, but their results suffer, or some arms are not available."""
    return Line(name, Verdict.WARNING, observed, advice)


def cannot(name: str, observed: str, advice: str) -> Line:
    """A check that fails: a study with bare and container arms cannot run."""
    return Line(name, Verdict.CANNOT, observed, advice)
