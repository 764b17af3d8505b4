"""A comparison as a versioned JSON file; its keys are documented in docs/reference/compare.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from tare.analyze import Analysis, Estimate
from tare.analyze.comparison import Change
from tare.analyze.overhead_limit import LimitCheck, Outcome
from tare.report.check.json_file import LIMIT_CHECK
from tare.report.comparison.content import Absolute, Compared, Side, absolutes
from tare.report.comparison.gate import Gate
from tare.report.comparison.surroundings import Unlike
from tare.report.entries import Added, Entries, Entry, Shape
from tare.version import __version__


@dataclass(frozen=True)
class MarkedEstimate:
    """An estimate; fractions: -0.58 is -58 %."""

    estimate: Estimate
    emulated: bool
    """Whether one of its arms ran on an emulated CPU."""


def _marked(value: Callable[[Change], MarkedEstimate]) -> Added:
    return Added(MarkedEstimate, value)


_ENTRIES = Entries(
    {
        Estimate: Shape(rename={"method": "estimator"}),
        MarkedEstimate: Shape(inline=("estimate",)),
        Change: Shape(
            without=("a", "b", "difference"),
            added={
                "a": _marked(lambda one: MarkedEstimate(one.a.estimate, one.a.mark is not None)),
                "b": _marked(lambda one: MarkedEstimate(one.b.estimate, one.b.mark is not None)),
                "difference": _marked(
                    lambda one: MarkedEstimate(
                        one.difference.estimate, one.a.mark is not None or one.b.mark is not None
                    )
                ),
            },
        ),
        Gate: Shape(
            rename={"most": "max_worse", "checks": "changes"},
            added={"outcome": Added(Outcome, lambda gate: gate.outcome)},
        ),
        LimitCheck: LIMIT_CHECK,
    }
)


class SideEntry(Entry):
    """One of the two stores."""

    store: str
    tare: str
    began_at: float | None
    blocks: int
    good: int
    attempted: int
    valid: bool
    ended: bool


class ComparisonFile(Entry):
    """Everything in `tare compare --format json`."""

    format: Literal[2] = Field(description="Version of this layout.")
    tare: str
    study: str
    scale: str
    answer: str
    a: SideEntry
    b: SideEntry
    unlike: tuple[Annotated[Unlike, _ENTRIES], ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    withheld: str | None = Field(description="Why no change is reported.")
    changes: tuple[Annotated[Change, _ENTRIES], ...]
    absolutes: tuple[Annotated[Absolute, _ENTRIES], ...]
    gate: Annotated[Gate, _ENTRIES] | None = Field(description="The decision of --fail-on.")


def render(compared: Compared) -> str:
    """Return the file's text."""
    shared = compared.comparison.shared
    file = ComparisonFile(
        format=2,
        tare=__version__,
        study=compared.a.study.name,
        scale=compared.a.study.scale,
        answer=compared.answer,
        a=_side(compared.a, compared.comparison.a),
        b=_side(compared.b, compared.comparison.b),
        unlike=tuple(compared.unlike),
        only_a=shared.only_a,
        only_b=shared.only_b,
        withheld=compared.comparison.withheld,
        changes=compared.comparison.changes,
        absolutes=tuple(absolutes(compared)),
        gate=compared.gate,
    )
    return file.model_dump_json(indent=2) + "\n"


def _side(side: Side, analysis: Analysis) -> SideEntry:
    return SideEntry(
        store=side.path,
        tare=side.tare_version,
        began_at=min((time.began_at for run in side.records for time in run.phases), default=None),
        blocks=len(analysis.blocks),
        good=analysis.good,
        attempted=analysis.attempted,
        valid=not analysis.invalid,
        ended=side.unfinished is None,
    )
