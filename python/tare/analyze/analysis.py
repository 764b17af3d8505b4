"""Analysis of a study: every arm against the baseline in every metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from tare.analyze.arms import ArmSummary, figure_of, summarise
from tare.analyze.estimate import BlockEffect, Estimate, Finding
from tare.analyze.estimator import estimate_of, over_hosts_of, over_sites_of
from tare.analyze.metrics import METRICS, PRIMARY, Metric, metrics_of
from tare.analyze.published import by_publication
from tare.analyze.runs import Failure, Runs, by_strata, select_runs
from tare.analyze.statistics.histogram import below_resolution
from tare.analyze.statistics.hosts import Placed, machines_apart
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.analyze.statistics.pairing import pair
from tare.analyze.validity import Alarm, check
from tare.analyze.verdict import judged
from tare.record.emulated import EmulatedArms, emulated_arms
from tare.record.run_record import RunRecord
from tare.study.model import Arm, Study

CONFIDENCE = 0.99
RULE = "control-differs"
"""Name of the validity rule: the control's 99 % interval excludes zero."""


@dataclass(frozen=True)
class Control:
    """The control arm against the baseline in throughput, paired by block, by a 99 % t interval."""

    arm: str
    estimate: Estimate
    usual: Estimate
    """The same as a 95 % interval, as all findings have it."""

    @property
    def could_hide(self) -> float | None:
        """Largest bias between equal arms that the study would not have shown, a fraction; `None`: nobody knows."""
        low, high = self.usual.low, self.usual.high
        return None if low is None or high is None else max(-low, high, 0.0)

    @property
    def differs(self) -> bool:
        """Rule `control-differs`: no figure of the study is credible then. One in a hundred differs by chance."""
        low, high = self.estimate.low, self.estimate.high
        return low is not None and high is not None and (low > 0 or high < 0)


def control_of(study: Study, runs: Runs) -> Control | None:
    """Compare the study's control with the baseline; `None` if the study has no control."""
    arm = next((arm.name for arm in study.arms if arm.control), None)
    if arm is None:
        return None
    pairs = pair(runs, arm, study.baseline, METRICS[PRIMARY])
    ratios = [ratio for _, ratio in pairs.ratios]
    return Control(arm, paired_log_ratio_t(ratios, CONFIDENCE), paired_log_ratio_t(ratios))


@dataclass(frozen=True)
class Stratum:
    """Findings in the blocks of one condition. `levels`: factor → level."""

    levels: Mapping[str, str]
    findings: tuple[Finding, ...]

    def finding(self, arm: str, metric: str) -> Finding:
        """Finding of an arm in a metric; raises `KeyError` if there is none."""
        return _find(self.findings, arm, metric)


@dataclass(frozen=True)
class Machines:
    """Throughput of all arms with the server on `turned` and the client on `own`, against the opposite placement.

    `own`: the server's host in the sites file. The estimate compares the hosts in both roles together: one as
    server and the other as client.
    """

    own: str
    turned: str
    estimate: Estimate


def machines_of(runs: Runs) -> Machines | None:
    """Compare the two hosts; `None` if hosts do not swap roles, or no two blocks can be compared."""
    turned = runs.swapped
    if not turned:
        return None
    series: dict[tuple[str, str], list[Placed]] = {}
    for (block, arm), run in sorted(runs.good.items(), key=lambda each: each[1].index):
        value = runs.value(block, arm, METRICS[PRIMARY])
        if value is not None and value > 0 and block in turned:
            of_condition = (arm, str(sorted(run.levels.items())))
            series.setdefault(of_condition, []).append(Placed(value, turned[block]))
    estimate = machines_apart(list(series.values()))
    first = next((run.between for run in runs.good.values() if run.between is not None), None)
    if estimate is None or first is None:
        return None
    own, other = (first.client, first.sut) if first.swapped else (first.sut, first.client)
    return Machines(own, other, estimate)


@dataclass(frozen=True)
class Analysis:
    """All conclusions from a study's records.

    `findings`: arms in the study's order without the baseline, each in every metric of `metrics`. `blocks`: blocks
    with any run. `good`: number of runs with a usable attempt, out of `attempted`.
    """

    findings: tuple[Finding, ...]
    arms: tuple[ArmSummary, ...]
    failures: tuple[Failure, ...]
    blocks: tuple[int, ...]
    good: int
    attempted: int
    alarms: tuple[Alarm, ...] = ()
    """Validity rules that the runs break."""
    control: Control | None = None
    """Difference between two instances of the baseline; `None` if a published protocol has no control."""

    metrics: tuple[Metric, ...] = tuple(METRICS.values())
    """Compared metrics: `METRICS`, then latencies of single kinds of operations, if there are several."""

    strata: tuple[Stratum, ...] = ()
    """Findings of single conditions, if the study has strata."""

    emulated: EmulatedArms = field(default_factory=dict)
    """Arms with a run on an emulated CPU."""

    machines: Machines | None = None
    """Difference between the two machines, if server and client swapped hosts."""

    at_a_rate: frozenset[str] = frozenset()
    """Arms whose generator had a rate to keep in every run, so that throughput does not tell them apart."""

    @property
    def invalid(self) -> bool:
        """Whether the control differs from the baseline, so that no other difference can be believed."""
        return self.control is not None and self.control.differs

    def finding(self, arm: str, metric: str) -> Finding:
        """Finding of an arm in a metric; raises `KeyError` if there is none."""
        return _find(self.findings, arm, metric)

    @property
    def estimated(self) -> bool:
        """Whether at least one arm could be compared with the baseline."""
        return any(finding.estimate.point is not None for finding in self.findings)


def _find(findings: Sequence[Finding], arm: str, metric: str) -> Finding:
    for finding in findings:
        if finding.arm == arm and finding.metric == metric:
            return finding
    raise KeyError(f"{arm}, {metric}")


def analyze(study: Study, records: Sequence[RunRecord]) -> Analysis:
    """Compare every arm with the baseline, by the estimator of the study's protocol; see `estimator`.

    Only the one good attempt of each run counts; failed attempts are listed and never averaged in.
    """
    runs = select_runs(study, records)
    control, metrics = control_of(study, runs), metrics_of(runs.good.values())
    strata = tuple((levels, select_runs(study, part)) for levels, part in by_strata(study, records) if study.strata)
    invalid = control is not None and control.differs
    return Analysis(
        findings=judged(study, _findings(study, runs, metrics, parts=strata), invalid=invalid),
        arms=summarise(study, runs, metrics),
        failures=runs.failures,
        blocks=runs.blocks,
        good=len(runs.good),
        attempted=len(runs.attempted),
        alarms=check(study, runs),
        control=control,
        metrics=metrics,
        strata=tuple(
            Stratum(levels, judged(study, _findings(study, part, metrics, levels), invalid=invalid))
            for levels, part in strata
        ),
        emulated=emulated_arms(runs.good.values()),
        machines=machines_of(runs),
        at_a_rate=_at_a_rate(runs),
    )


def _at_a_rate(runs: Runs) -> frozenset[str]:
    shares = runs.columns.number("measurement", "details", "delivered_share")
    free = {run.arm for run, share in zip(runs.columns.records, shares, strict=True) if np.isnan(share)}
    return frozenset(run.arm for run in runs.columns.records) - free


def _findings(
    study: Study,
    runs: Runs,
    metrics: Sequence[Metric],
    stratum: Mapping[str, str] = MappingProxyType({}),
    parts: Sequence[tuple[Mapping[str, str], Runs]] = (),
) -> tuple[Finding, ...]:
    """Findings of every arm except the baseline; `parts`: strata, over which a publication may average."""
    emulated = emulated_arms(runs.good.values())
    return tuple(
        replace(
            _finding(study, runs, arm, metric, stratum),
            emulated=emulated.get(arm.name, ()),
            baseline_emulated=emulated.get(study.baseline_of(arm.name), ()),
            as_published=by_publication(study, [part for _, part in parts] or [runs], arm.name, metric),
        )
        for arm in study.arms
        if arm.name != study.baseline_of(arm.name)
        for metric in metrics
    )


def _finding(study: Study, runs: Runs, arm: Arm, metric: Metric, stratum: Mapping[str, str]) -> Finding:
    baseline = study.baseline_of(arm.name)
    pairs = pair(runs, arm.name, baseline, metric)
    sites, hosts = over_sites_of(study, runs, pairs), over_hosts_of(study, runs, pairs)
    over = sites or hosts
    estimate = estimate_of(study, runs, arm.name, metric, pairs) if over is None else over.estimate
    figure = figure_of(study, arm, metric, stratum)
    return Finding(
        study=study.name,
        arm=arm.name,
        levels=arm.levels,
        baseline=baseline,
        metric=metric.name,
        estimate=estimate,
        published=published_effect(study, arm, metric, stratum),
        published_where=None if figure is None else figure.where,
        blocks=tuple([BlockEffect(block, ratio - 1) for block, ratio in pairs.ratios]),
        dropped=pairs.dropped,
        resolution=pairs.resolution,
        below_resolution=below_resolution(estimate.point, pairs.resolution),
        control=arm.control,
        stratum=dict(stratum),
        over_sites=sites,
        over_hosts=hosts,
    )


def published_effect(
    study: Study, arm: Arm, metric: Metric, stratum: Mapping[str, str] = MappingProxyType({})
) -> float | None:
    """Published relative effect: as given, else from the published values of arm and baseline."""
    figure = figure_of(study, arm, metric, stratum)
    if figure is None or figure.relative is not None:
        return None if figure is None else figure.relative
    baseline = next(each for each in study.arms if each.name == study.baseline_of(arm.name))
    reference = figure_of(study, baseline, metric, stratum)
    if figure.value is None or reference is None or not reference.value or figure.unit != reference.unit:
        return None
    relative = figure.value / reference.value - 1
    return relative if math.isfinite(relative) else None
