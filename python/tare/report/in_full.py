"""Contents of a full report only: read from raw files, or too slow for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tare.analyze.explain.explanation import explain
from tare.analyze.explain.run_times import run_times
from tare.analyze.factorial import factorial
from tare.analyze.statistics.quantile_shift import quantile_shifts
from tare.analyze.timelines import timelines
from tare.analyze.timelines.runs import overlay
from tare.analyze.views.summary import telling
from tare.record.run_record import RunRecord
from tare.report.content import Report
from tare.report.known import known
from tare.store import Store


def in_full(report: Report, store: Store, records: Sequence[RunRecord], chosen: Sequence[str] = ()) -> Report:
    """Add what the store's raw files show: monitors' views, timelines, single runs.

    `chosen`: ids of the runs to show first. Raises `StoreError` for an unknown run. Damaged files are left out, and
    the notices name them.
    """
    views, unseen = telling(store, records, _baselines_and_control(report))
    over_time = timelines(report.study, store, records)
    laid_over = overlay(report.study, store, records, chosen)
    return replace(
        with_explanation(with_details(report, records), store, records),
        views=views,
        timelines=over_time,
        laid_over=laid_over,
        unread=tuple(dict.fromkeys((*report.unread, *unseen, *over_time.unread, *laid_over.unread))),
    )


def with_explanation(report: Report, store: Store, records: Sequence[RunRecord]) -> Report:
    """Add where the time goes, if any run sampled stacks."""
    profiles = [(record.monitors or {}).get("profile") for record in records]
    if not any(each is not None and each.samples is not None for each in profiles):
        return report
    explanation = explain(report.study, records, lambda record: run_times(record, store.raw))
    return replace(report, explanation=explanation)


def _baselines_and_control(report: Report) -> frozenset[str]:
    """Return baselines and the control, which have fewer layers for a monitor to show."""
    study = report.study
    baselines = {study.baseline_of(arm.name) for arm in study.arms}
    return frozenset({*baselines, *(arm.name for arm in study.arms if arm.control)})


def with_details(report: Report, records: Sequence[RunRecord]) -> Report:
    """Add what follows from the records alone: shifts of latency, effects of factors."""
    return replace(
        report,
        shifts=quantile_shifts(report.study, records),
        effects=factorial(report.study, records, known(report.analysis)),
    )
