"""A comparison as a versioned JSON file; its keys are documented in docs/reference/compare.md."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tare.analyze import Analysis, Estimate
from tare.analyze.comparison import Change
from tare.report.comparison.content import Compared, Side, absolutes
from tare.report.findings_file import Entry
from tare.version import __version__


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


class UnlikeEntry(Entry):
    """One difference in what surrounds the runs."""

    group: Literal["study", "machine", "engine", "images", "settings"]
    name: str
    a: str
    b: str


class EstimateEntry(Entry):
    """An estimate; fractions: -0.58 is -58 %."""

    point: float | None
    low: float | None
    high: float | None
    n: int
    confidence: float
    estimator: str
    why: str | None
    emulated: bool = Field(description="Whether one of its arms ran on an emulated CPU.")


class ChangeEntry(Entry):
    """One arm in one metric: the overhead in A and B, and B's ratio relative to A's."""

    arm: str
    metric: str
    a: EstimateEntry
    b: EstimateEntry
    difference: EstimateEntry
    p_zero: float | None = Field(description="p value of no difference, adjusted by Holm over the family.")
    family: int
    below_resolution: bool
    changed: bool


class AbsoluteEntry(Entry):
    """An arm's median throughput in both stores."""

    arm: str
    unit: str
    a: float | None
    b: float | None
    emulated: bool = Field(description="Whether the arm ran on an emulated CPU in A or B.")


class ComparisonFile(Entry):
    """Everything in `tare compare --format json`."""

    format: Literal[1] = Field(description="Version of this layout.")
    tare: str
    study: str
    scale: str
    answer: str
    a: SideEntry
    b: SideEntry
    unlike: tuple[UnlikeEntry, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    withheld: str | None = Field(description="Why no change is reported.")
    changes: tuple[ChangeEntry, ...]
    absolutes: tuple[AbsoluteEntry, ...]


def render(compared: Compared) -> str:
    """Return the file's text."""
    shared = compared.comparison.shared
    file = ComparisonFile(
        format=1,
        tare=__version__,
        study=compared.a.study.name,
        scale=compared.a.study.scale,
        answer=compared.answer,
        a=_side(compared.a, compared.comparison.a),
        b=_side(compared.b, compared.comparison.b),
        unlike=tuple(
            UnlikeEntry.model_validate({"group": each.group, "name": each.name, "a": each.a, "b": each.b})
            for each in compared.unlike
        ),
        only_a=shared.only_a,
        only_b=shared.only_b,
        withheld=compared.comparison.withheld,
        changes=tuple(_change(each) for each in compared.comparison.changes),
        absolutes=tuple(
            AbsoluteEntry(arm=each.arm, unit=each.unit, a=each.a, b=each.b, emulated=each.emulated)
            for each in absolutes(compared)
        ),
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


def _change(change: Change) -> ChangeEntry:
    a_mark, b_mark = change.a.mark, change.b.mark
    return ChangeEntry(
        arm=change.arm,
        metric=change.metric,
        a=_estimate(change.a.estimate, emulated=a_mark is not None),
        b=_estimate(change.b.estimate, emulated=b_mark is not None),
        difference=_estimate(change.difference.estimate, emulated=a_mark is not None or b_mark is not None),
        p_zero=change.p_zero,
        family=change.family,
        below_resolution=change.below_resolution,
        changed=change.changed,
    )


def _estimate(estimate: Estimate, *, emulated: bool) -> EstimateEntry:
    return EstimateEntry(
        point=estimate.point,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        confidence=estimate.confidence,
        estimator=estimate.method,
        why=estimate.why,
        emulated=emulated,
    )
