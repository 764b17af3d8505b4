"""What the site shows of a store: its answer, its machine, and each run's figures to compare any two arms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tare.analyze import analyze
from tare.analyze.analysis import Analysis
from tare.analyze.answer import Trust, arm_answers, trust
from tare.analyze.runs import select_runs
from tare.record.emulated import with_marks
from tare.record.run_record import RunRecord
from tare.report.figures import moment
from tare.report.plain import plain
from tare.report.words.answer import against
from tare.report.words.answer_lines import phrase, trust_text
from tare.store import Store
from tare.study.model import Study

_OF_HOST = ("cpu_model", "cpu_count", "memory_total_bytes", "kernel")
_OF_ENGINE = ("engine", "engine_version", "engine_storage_driver")
"""Facts of host and engine that tell machines apart."""


@dataclass(frozen=True)
class StoreView:
    """One store. `level`: how far to trust it; `answers`: arm → what it costs; `tree`: for the explorer."""

    id: str
    name: str
    level: Trust | None
    trust: str
    against: str
    answers: Mapping[str, str]
    machine: Mapping[str, str]
    tree: Mapping[str, Any]


def store_view(store: Store, number: int, called: str) -> StoreView:
    """Analyse a store. `number`: its place on the site, from 1, of which its id is made; `called`: its name."""
    study, records = with_marks(store.plan.study, store.records())
    analysis = analyze(study, records)
    answers = arm_answers(study, analysis)
    trusted = trust(study, analysis, answers)
    name = plain(f"{called}: {study.name}, {study.scale}", 120)
    began = min((time.began_at for run in records for time in run.phases), default=None)
    title = name if began is None else f"{name}, {moment(began)}"
    return StoreView(
        id=f"store-{number}",
        name=title,
        level=None if trusted is None else trusted.level,
        trust="No arm has an estimate." if trusted is None else plain(trust_text(trusted), 600),
        against=against(study),
        answers={plain(each.finding.arm, 80): plain(phrase(each), 300) for each in answers},
        machine=_machine(records),
        tree={"id": f"store-{number}", "name": title, **_figures(study, records, analysis)},
    )


def _machine(records: Sequence[RunRecord]) -> Mapping[str, str]:
    facts: dict[str, str] = {}
    for run in records:
        known = {name: getattr(run.host, name) for name in _OF_HOST}
        known |= {name: getattr(run.engine, name, None) for name in _OF_ENGINE}
        facts |= {name: plain(str(value), 100) for name, value in known.items() if value not in (None, "")}
    return facts


def _figures(study: Study, records: Sequence[RunRecord], analysis: Analysis) -> Mapping[str, Any]:
    """Metric → arm → value by block, and the estimates against the study's own baselines."""
    runs = select_runs(study, records)
    arms = [{"name": arm.name, "baseline": study.baseline_of(arm.name)} for arm in study.arms]
    metrics = []
    for metric in analysis.metrics:
        values: dict[str, dict[str, float]] = {}
        for (block, arm), run in runs.good.items():
            value = metric.of(run)
            if value is not None and math.isfinite(value) and value > 0:
                values.setdefault(arm, {})[str(block)] = value
        findings = {}
        for arm in (each.name for each in study.arms if study.baseline_of(each.name) != each.name):
            estimate = analysis.finding(arm, metric.name).estimate
            findings[arm] = [estimate.point, estimate.low, estimate.high, estimate.n]
        if values:
            metrics.append(
                {"name": metric.name, "title": metric.title, "unit": metric.unit, "values": values, "own": findings}
            )
    return {"arms": arms, "metrics": metrics}
