"""The findings as a versioned JSON file; its keys are documented in docs/reference/findings.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from tare.analyze import Finding
from tare.analyze.analysis import Control, Machines
from tare.analyze.answer import ArmAnswer, Trusted, arm_answers, trust
from tare.analyze.arms import ArmSummary, Level
from tare.analyze.estimate import Estimate, OverHosts, OverSites
from tare.analyze.quantities import QuantityRow
from tare.analyze.runs import Failure
from tare.analyze.validity import Alarm
from tare.protocols.registry import PROTOCOLS, as_published
from tare.report.content import Report
from tare.report.entries import Added, Entries, Entry, Shape
from tare.traps.met import Met
from tare.version import __version__

FORMAT = 2
"""2 added the verdicts, and takes percentiles from the stored histograms in place of the generator's output."""
_BOUND = float | None
_OVER = ("estimate", "mean", "error", "freedom", "pooled")
_POOLED: Mapping[str, Added] = {
    "pooled_low": Added(
        _BOUND,
        lambda over: over.pooled.low,
        "Interval over all blocks that ignores the differences, for comparison.",
    ),
    "pooled_high": Added(_BOUND, lambda over: over.pooled.high),
}
SHAPES: Mapping[type, Shape] = {
    Estimate: Shape(rename={"method": "estimator"}),
    Finding: Shape(inline=("estimate", "judgement"), without=("differs",)),
    OverSites: Shape(without=_OVER, added=_POOLED),
    OverHosts: Shape(without=_OVER, added=_POOLED),
    Level: Shape(without=("metric",)),
    ArmSummary: Shape(rename={"is_baseline": "baseline"}),
    Control: Shape(
        inline=("estimate",), without=("usual",), added={"differs": Added(bool, lambda control: control.differs)}
    ),
    Machines: Shape(inline=("estimate",)),
    QuantityRow: Shape(inline=("signed",)),
    Trusted: Shape(without=("widest",)),
    ArmAnswer: Shape(
        without=("finding", "small"),
        rename={"kind": "answer", "low": "cost_low", "high": "cost_high"},
        added={
            "arm": Added(str, lambda answer: answer.finding.arm),
            "metric": Added(str, lambda answer: answer.finding.metric),
        },
    ),
}
"""How the dataclasses of `analyze` are written, where not field by field."""
ENTRIES = Entries(SHAPES)
Findings = tuple[Annotated[Finding, ENTRIES], ...]


class MetTrap(Entry):
    """A known trap that arms meet."""

    trap: str = Field(description="Its id.")
    title: str
    arms: tuple[str, ...]
    rule: str | None = Field(
        description="Validity rule that it breaks; null: it sets arms apart from their baseline."
    )
    evidence: Mapping[str, str | int | float | bool | tuple[str, ...]] = Field(
        description="Its facts, as the first of these arms has them."
    )
    cost: str
    remedy: str


class FindingsFile(Entry):
    """Everything in `tare report --format json`."""

    format: Literal[2] = Field(description="Version of this layout.")
    tare: str = Field(description="Version of tare that wrote the file.")
    study: str
    scale: str
    question: str
    answer: str
    trust: Annotated[Trusted, ENTRIES] | None = Field(description="Null while no arm has an estimate.")
    answers: tuple[Annotated[ArmAnswer, ENTRIES], ...]
    baseline: str
    baseline_levels: Mapping[str, str] = Field(
        description="Levels that make an arm a baseline, where arms are compared with several; else empty."
    )
    protocol: str
    published_baseline: bool = Field(description="For comparison with publications only: intervals are too narrow.")
    different_operating_point: bool = Field(
        description="Two arms ran at once (duet): do not mix with overheads of arms that ran alone."
    )
    valid: bool = Field(description="False if the control differs from the baseline.")
    control: Annotated[Control, ENTRIES] | None
    planned: int = Field(description="Runs of the plan.")
    attempts: int
    good: int = Field(description="Runs with a usable attempt.")
    machine_s: float = Field(description="Seconds of all phases of all attempts.")
    findings: Findings
    strata: Findings = Field(description="Findings of single conditions, if there are strata.")
    arms: tuple[Annotated[ArmSummary, ENTRIES], ...]
    failures: tuple[Annotated[Failure, ENTRIES], ...]
    quantities: tuple[Annotated[QuantityRow, ENTRIES], ...] = Field(
        description="Quantities by the source's own definitions."
    )
    validity: tuple[Annotated[Alarm, ENTRIES], ...] = Field(description="Validity rules that the runs break.")
    traps: tuple[MetTrap, ...] = Field(description="Known traps: docs/reference/traps.md.")
    machines: Annotated[Machines, ENTRIES] | None = Field(
        description="How two hosts differ, if server and client swap hosts; else null."
    )
    calibration: str | None = Field(description="What calibration showed for the machine of the runs, in words.")
    notices: tuple[str, ...]
    deviations: tuple[str, ...]


def render(report: Report) -> str:
    """Return the file's text."""
    return file_of(report).model_dump_json(indent=2) + "\n"


def _met(rule: str | None, met: Met) -> MetTrap:
    trap = met.trap.trap
    return MetTrap(
        trap=met.trap.id,
        title=trap.title,
        arms=met.arms,
        rule=rule,
        evidence=met.evidence,
        cost=trap.cost.says,
        remedy=trap.remedy.says,
    )


def file_of(report: Report) -> FindingsFile:
    """Convert a report to the file's model."""
    study, analysis = report.study, report.analysis
    answers = arm_answers(study, analysis)
    return FindingsFile(
        format=2,
        tare=__version__,
        study=study.name,
        scale=study.scale,
        question=study.question,
        answer=report.answer,
        trust=trust(study, analysis, answers),
        answers=tuple(answers),
        baseline=study.baseline,
        baseline_levels=study.baseline_levels,
        protocol=study.protocol.name,
        published_baseline=as_published(study),
        different_operating_point=PROTOCOLS[study.protocol.name].at_once,
        valid=not analysis.invalid,
        control=analysis.control,
        planned=report.planned,
        attempts=report.spent.attempts,
        good=analysis.good,
        machine_s=report.spent.runs_s,
        findings=analysis.findings,
        strata=tuple(finding for stratum in analysis.strata for finding in stratum.findings),
        arms=analysis.arms,
        failures=analysis.failures,
        quantities=report.quantities,
        validity=analysis.alarms,
        traps=(
            *(_met(None, each) for each in report.traps),
            *(_met(rule, each) for rule, behind in report.behind.items() for each in behind),
        ),
        machines=analysis.machines,
        calibration=report.calibration,
        notices=report.notices,
        deviations=study.deviations,
    )
