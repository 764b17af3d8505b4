"""The findings as a versioned JSON file; its keys are documented in docs/reference/findings.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tare.analyze import Analysis, Estimate, Finding
from tare.analyze.arms import ArmSummary, Level
from tare.analyze.quantities import QuantityRow
from tare.analyze.runs import Failure
from tare.analyze.validity import Alarm
from tare.protocols.registry import PROTOCOLS, as_published
from tare.report.content import Report
from tare.report.hosts_entry import HostsEntry, MachinesEntry, hosts_entry, machines_entry
from tare.report.sites_entry import SitesEntry, sites_entry
from tare.run.record import Side
from tare.version import __version__

FORMAT = 2
"""2 added the verdicts, and takes percentiles from the stored histograms in place of the generator's output."""


class Entry(BaseModel):
    """Frozen model; every key is always present."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class BlockPoint(Entry):
    """The relative effect in one block, a fraction."""

    block: int
    point: float


class DroppedBlock(Entry):
    """A block that the finding leaves out."""

    block: int
    why: str


class PublishedWay(Entry):
    """Estimate by the publication's own method; `n`: runs of each side."""

    estimator: str
    point: float | None
    n: int


class FindingEntry(Entry):
    """One arm against the baseline in one metric. All effects are fractions: -0.58 is -58 %."""

    study: str
    arm: str
    levels: Mapping[str, str]
    baseline: str
    metric: str
    estimator: str
    point: float | None
    low: float | None
    high: float | None
    n: int = Field(description="Blocks with a good run of both arm and baseline.")
    confidence: float
    why: str | None = Field(description="Why there is no interval.")
    published: float | None
    published_where: str | None
    resolution: float | None = Field(description="Relative width of the generator's histogram bucket.")
    control: bool = Field(description="The arm is a second instance of the baseline.")
    below_resolution: bool = Field(description="The point is within one bucket: no difference may be claimed.")
    stratum: Mapping[str, str] = Field(description="Condition → level of the blocks it covers; empty: all.")
    as_published: PublishedWay | None = Field(
        description="By the publication's own method, if the study names one."
    )
    margin: float | None = Field(description="Largest effect that the study declares irrelevant.")
    verdict: Literal["equivalent", "different", "inconclusive"] | None
    withheld: str | None = Field(description="Why there is no verdict although there is a margin.")
    p_zero: float | None = Field(description="p value of no effect, adjusted over the family.")
    p_outside: float | None = Field(description="p value of an effect outside the margin, adjusted too.")
    family: int = Field(description="Metrics that the p values were adjusted over; 1: not adjusted.")
    over_sites: SitesEntry | None = Field(description="Present if the blocks were run on several sites; else null.")
    over_hosts: HostsEntry | None = Field(description="Present if server and client swap hosts; else null.")
    blocks: tuple[BlockPoint, ...]
    dropped: tuple[DroppedBlock, ...]
    emulated: tuple[Side, ...] = Field(description="Sides of the arm that ran on an emulated CPU.")
    baseline_emulated: tuple[Side, ...] = Field(description="The same for the baseline.")


class ValueEntry(Entry):
    """An arm's own value over its good runs, in the metric's unit (operations a second, milliseconds)."""

    n: int
    median: float | None
    smallest: float | None
    largest: float | None
    mean: float | None
    stddev: float | None = Field(description="Sample standard deviation (n - 1); null for one run.")
    published: float | None
    published_unit: str | None


class LimitsEntry(Entry):
    """Bottleneck of an arm's runs, medians from their traces; null: no run has a figure."""

    sut_busy: float | None = Field(description="Share of the CPU time available to the SUT that it used.")
    client_busy: float | None
    sut_waiting_io: float | None = Field(description="Share of time in which a thread of the SUT waited for I/O.")
    disk_busy: float | None = Field(description="Share of time in which the busiest disk had requests.")
    disk_depth: float | None = Field(description="Mean number of requests in flight on that disk.")
    reads_per_s: float | None
    writes_per_s: float | None
    disk_limit_used: float | None = Field(
        description="Share of the time in which a limit on disk operations delayed the SUT."
    )
    reached: tuple[Literal["client", "sut", "disk"], ...] | None = Field(
        description="What was exhausted in more than half of the runs; empty: something else; null: not known."
    )


class ArmEntry(Entry):
    """One arm. `values`: metric → value."""

    arm: str
    levels: Mapping[str, str]
    baseline: bool
    good: int
    attempted: int
    unit: str | None = Field(description="What throughput counts.")
    emulated: tuple[Side, ...] = Field(description="Sides that ran on an emulated CPU.")
    limits: LimitsEntry
    values: Mapping[str, ValueEntry]


class FailureEntry(Entry):
    """A failed attempt. `made_good`: another attempt of the same run is used."""

    run_id: str
    attempt: int
    block: int
    arm: str
    phase: str | None
    reason: str
    made_good: bool


class ControlEntry(Entry):
    """The A/A control: a second instance of the baseline against the baseline, in throughput."""

    arm: str
    point: float | None
    low: float | None
    high: float | None
    n: int
    confidence: float
    differs: bool = Field(description="The interval excludes zero (rule control-differs): the study is invalid.")


class AlarmEntry(Entry):
    """A broken validity rule. `arm`: null for the whole study; `runs`: the runs to look at."""

    rule: str
    arm: str | None
    what: str
    runs: tuple[str, ...]
    do: str


class SpreadEntry(Entry):
    """Mean and mean square error over the good runs; the latter in the square of the unit."""

    n: int
    mean: float
    mse: float


class QuantityEntry(Entry):
    """A quantity as the study's source defines it, from one source, of an arm and of its baseline."""

    quantity: str
    source: str
    unit: str
    arm: str
    baseline: str
    emulated: bool = Field(description="Whether the arm or its baseline ran on an emulated CPU.")
    value: SpreadEntry
    reference: SpreadEntry
    overhead: float | None = Field(description="|arm - baseline| / baseline of the means, a fraction.")
    point: float | None = Field(description="tare's own estimate of the same, with its sign, paired by block.")
    low: float | None
    high: float | None


class FindingsFile(Entry):
    """Everything in `tare report --format json`."""

    format: Literal[2] = Field(description="Version of this layout.")
    tare: str = Field(description="Version of tare that wrote the file.")
    study: str
    scale: str
    question: str
    answer: str
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
    control: ControlEntry | None
    planned: int = Field(description="Runs of the plan.")
    attempts: int
    good: int = Field(description="Runs with a usable attempt.")
    machine_s: float = Field(description="Seconds of all phases of all attempts.")
    findings: tuple[FindingEntry, ...]
    strata: tuple[FindingEntry, ...] = Field(description="Findings of single conditions, if there are strata.")
    arms: tuple[ArmEntry, ...]
    failures: tuple[FailureEntry, ...]
    quantities: tuple[QuantityEntry, ...] = Field(description="Quantities by the source's own definitions.")
    validity: tuple[AlarmEntry, ...] = Field(description="Validity rules that the runs break.")
    machines: MachinesEntry | None = Field(
        description="How two hosts differ, if server and client swap hosts; else null."
    )
    calibration: str | None = Field(description="What calibration showed for the machine of the runs, in words.")
    notices: tuple[str, ...]
    deviations: tuple[str, ...]


def render(report: Report) -> str:
    """Return the file's text."""
    return file_of(report).model_dump_json(indent=2) + "\n"


def file_of(report: Report) -> FindingsFile:
    """Convert a report to the file's model."""
    study, analysis = report.study, report.analysis
    return FindingsFile(
        format=2,
        tare=__version__,
        study=study.name,
        scale=study.scale,
        question=study.question,
        answer=report.answer,
        baseline=study.baseline,
        baseline_levels=study.baseline_levels,
        protocol=study.protocol.name,
        published_baseline=as_published(study),
        different_operating_point=PROTOCOLS[study.protocol.name].at_once,
        valid=not analysis.invalid,
        control=_control(analysis),
        planned=report.planned,
        attempts=report.spent.attempts,
        good=analysis.good,
        machine_s=report.spent.runs_s,
        findings=tuple(_finding(finding) for finding in analysis.findings),
        strata=tuple(_finding(finding) for stratum in analysis.strata for finding in stratum.findings),
        arms=tuple(_arm(arm) for arm in analysis.arms),
        failures=_failures(analysis),
        quantities=tuple(_quantity(one, analysis) for one in report.quantities),
        validity=tuple(_alarm(alarm) for alarm in analysis.alarms),
        machines=machines_entry(analysis.machines),
        calibration=report.calibration,
        notices=report.notices,
        deviations=study.deviations,
    )


def _control(analysis: Analysis) -> ControlEntry | None:
    control = analysis.control
    if control is None:
        return None
    one = control.estimate
    return ControlEntry(
        arm=control.arm,
        point=one.point,
        low=one.low,
        high=one.high,
        n=one.n,
        confidence=one.confidence,
        differs=control.differs,
    )


def _finding(finding: Finding) -> FindingEntry:
    estimate, judgement = finding.estimate, finding.judgement
    return FindingEntry(
        study=finding.study,
        arm=finding.arm,
        levels=finding.levels,
        baseline=finding.baseline,
        metric=finding.metric,
        estimator=estimate.method,
        point=estimate.point,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        confidence=estimate.confidence,
        why=estimate.why,
        published=finding.published,
        published_where=finding.published_where,
        resolution=finding.resolution,
        control=finding.control,
        below_resolution=finding.below_resolution,
        stratum=finding.stratum,
        as_published=_as_published(finding.as_published),
        margin=judgement.margin,
        verdict=None if judgement.verdict is None else judgement.verdict.value,
        withheld=judgement.withheld,
        p_zero=judgement.p_zero,
        p_outside=judgement.p_outside,
        family=judgement.family,
        over_sites=sites_entry(finding.over_sites),
        over_hosts=hosts_entry(finding.over_hosts),
        blocks=tuple(BlockPoint(block=block, point=point) for block, point in finding.blocks),
        dropped=tuple(DroppedBlock(block=each.block, why=each.why) for each in finding.dropped),
        emulated=finding.emulated,
        baseline_emulated=finding.baseline_emulated,
    )


def _as_published(estimate: Estimate | None) -> PublishedWay | None:
    return None if estimate is None else PublishedWay(estimator=estimate.method, point=estimate.point, n=estimate.n)


def _arm(arm: ArmSummary) -> ArmEntry:
    return ArmEntry(
        arm=arm.arm,
        levels=arm.levels,
        baseline=arm.is_baseline,
        good=arm.good,
        attempted=arm.attempted,
        unit=arm.unit,
        emulated=arm.emulated,
        limits=LimitsEntry(**dataclasses.asdict(arm.limits)),
        values={metric: _value(level) for metric, level in arm.values.items()},
    )


def _value(level: Level) -> ValueEntry:
    return ValueEntry(
        n=level.n,
        median=level.median,
        smallest=level.smallest,
        largest=level.largest,
        mean=level.mean,
        stddev=level.stddev,
        published=level.published,
        published_unit=level.published_unit,
    )


def _quantity(one: QuantityRow, analysis: Analysis) -> QuantityEntry:
    return QuantityEntry(
        quantity=one.quantity,
        source=one.source,
        unit=one.unit,
        arm=one.arm,
        baseline=one.baseline,
        emulated=one.arm in analysis.emulated or one.baseline in analysis.emulated,
        value=SpreadEntry(n=one.value.n, mean=one.value.mean, mse=one.value.mse),
        reference=SpreadEntry(n=one.reference.n, mean=one.reference.mean, mse=one.reference.mse),
        overhead=one.overhead,
        point=one.signed.point,
        low=one.signed.low,
        high=one.signed.high,
    )


def _alarm(alarm: Alarm) -> AlarmEntry:
    return AlarmEntry(rule=alarm.rule, arm=alarm.arm, what=alarm.what, runs=alarm.runs, do=alarm.do)


def _failures(analysis: Analysis) -> tuple[FailureEntry, ...]:
    return tuple(_failure(failure) for failure in analysis.failures)


def _failure(failure: Failure) -> FailureEntry:
    return FailureEntry(
        run_id=failure.run_id,
        attempt=failure.attempt,
        block=failure.block,
        arm=failure.arm,
        phase=failure.phase,
        reason=failure.reason,
        made_good=failure.made_good,
    )
