"""A check as a versioned JSON file; its keys are documented in docs/reference/check.md."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tare.analyze.overhead_limit import LimitCheck
from tare.report.check.content import Check
from tare.report.findings_file import Entry
from tare.version import __version__

OutcomeName = Literal["pass", "fail", "inconclusive", "too-noisy"]


class HeldEntry(Entry):
    """One arm in one metric. Overheads are fractions; higher is worse."""

    arm: str
    baseline: str
    metric: str
    outcome: OutcomeName
    why: str | None = Field(description="What decides if the interval does not.")
    point: float | None
    low: float | None
    high: float | None
    n: int
    confidence: float
    resolution: float | None = Field(description="Amount by which low and high are widened.")
    emulated: bool = Field(description="Whether the arm or its baseline ran on an emulated CPU.")


class CheckFile(Entry):
    """Everything in `tare check --json`."""

    format: Literal[1] = Field(description="Version of this layout.")
    tare: str
    study: str
    scale: str
    outcome: OutcomeName
    lenient: bool = Field(description="Whether an inconclusive check passes.")
    valid: bool = Field(description="False if the control differs from the baseline.")
    max_overhead: float
    overheads: tuple[HeldEntry, ...]
    validity: tuple[str, ...] = Field(description="Validity rules that the runs break, in words.")


def render(check: Check) -> str:
    """Return the file's text."""
    file = CheckFile(
        format=1,
        tare=__version__,
        study=check.study.name,
        scale=check.study.scale,
        outcome=check.outcome.value,
        lenient=check.lenient,
        valid=not check.analysis.invalid,
        max_overhead=check.most,
        overheads=tuple(_entry(one) for one in check.checks),
        validity=check.notes,
    )
    return file.model_dump_json(indent=2) + "\n"


def _entry(one: LimitCheck) -> HeldEntry:
    return HeldEntry(
        arm=one.arm,
        baseline=one.baseline,
        metric=one.metric,
        outcome=one.outcome.value,
        why=one.why,
        point=one.point,
        low=one.low,
        high=one.high,
        n=one.n,
        confidence=one.confidence,
        resolution=one.resolution,
        emulated=one.mark is not None,
    )
