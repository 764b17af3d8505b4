"""A check as a versioned JSON file; its keys are documented in docs/reference/check.md."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tare.analyze.overhead_limit import LimitCheck, Outcome
from tare.report.check.content import Check
from tare.report.entries import Added, Entries, Entry, Shape
from tare.version import __version__

LIMIT_CHECK = Shape(
    without=("mark",),
    rename={"most": "max_overhead"},
    added={"emulated": Added(bool, lambda one: one.mark is not None)},
)
_ENTRIES = Entries({LimitCheck: LIMIT_CHECK})


class CheckFile(Entry):
    """Everything in `tare check --json`."""

    format: Literal[2] = Field(description="Version of this layout.")
    tare: str
    study: str
    scale: str
    outcome: Outcome
    lenient: bool = Field(description="Whether an inconclusive check passes.")
    valid: bool = Field(description="False if the control differs from the baseline.")
    overheads: tuple[Annotated[LimitCheck, _ENTRIES], ...]
    validity: tuple[str, ...] = Field(description="Validity rules that the runs break, in words.")


def render(check: Check) -> str:
    """Return the file's text."""
    file = CheckFile(
        format=2,
        tare=__version__,
        study=check.study.name,
        scale=check.study.scale,
        outcome=check.outcome,
        lenient=check.lenient,
        valid=not check.analysis.invalid,
        overheads=tuple(check.checks),
        validity=check.notes,
    )
    return file.model_dump_json(indent=2) + "\n"
