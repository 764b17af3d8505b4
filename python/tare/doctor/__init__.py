"""What a machine can and cannot do for a study, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a line stands. `CANNOT`: a study with bare and container arms cannot run here before it is mended."""

    OK = "ok"
    WARNING = "warning"
    CANNOT = "cannot"


@dataclass(frozen=True)
class Line:
    """One thing looked at. `advice`: what to do, `None` where nothing is to be done."""

    name: str
    verdict: Verdict
    found: str
    advice: str | None = None


def ok(name: str, observed: str) -> Line:
    """Nothing to be done."""
    return Line(name, Verdict.OK, observed)


def warning(name: str, observed: str, advice: str) -> Line:
    """Studies run, but their results suffer, or some arms are out of reach."""
    return Line(name, Verdict.WARNING, observed, advice)


def cannot(name: str, observed: str, advice: str) -> Line:
    """A study with bare and container arms cannot run."""
    return Line(name, Verdict.CANNOT, observed, advice)
