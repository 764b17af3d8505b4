"""Each arm against the baseline, metric by metric: the main table, kinds of operations, repetitions, blocks."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze import Analysis
from tare.analyze.arms import ArmSummary
from tare.analyze.metrics import METRICS, PRIMARY, Metric
from tare.report.content import Report
from tare.report.figures import amount, percent
from tare.report.known import compared, compared_by_operation, known, known_by_operation, published_in
from tare.report.plain import plain
from tare.report.section import (
    EVERYWHERE,
    PAGES,
    TERMINAL,
    TEXTS,
    Column,
    Section,
    arm,
    effect,
    effect_and_published,
    of_finding,
    published,
)
from tare.report.words.answer import against, interval_kind, runs_of_baseline, unpaired, why_no_interval

_IN_A_TERMINAL = METRICS["latency_p95"].name
"""The one metric beside throughput for which a terminal has room."""
_MOST_COLUMNS = 20
"""Most blocks across the page."""
_REPEATED = "As published: smallest, largest, mean and standard deviation"
_REPEATED_READING = (
    "As the source reports repetitions: over an arm's good runs, with the sample standard deviation; change of "
    "means without an interval. Overhead and interval are tare's estimate."
)
BASELINE = "baseline"


def unit_of(analysis: Analysis) -> str:
    """Return what throughput counts, shortened."""
    unit = next((arm.unit for arm in analysis.arms if arm.unit), "operations")
    return "trans." if unit == "transactions" else plain(unit, 10)


def overheads(report: Report) -> Iterator[Section]:
    """Yield the main table: the overhead of each arm in each metric."""
    analysis = report.analysis
    others = [metric for metric in compared(analysis) if metric.name != PRIMARY]
    columns = (
        arm(),
        Column("n"),
        Column(f"{unit_of(analysis)}/s", amount, optional=1, formats=TEXTS),
        Column("throughput", effect),
        Column(
            "published", published, optional=1, formats=EVERYWHERE if published_in(analysis, PRIMARY) else TEXTS
        ),
        *(
            Column(
                metric.short,
                effect_and_published,
                brief=metric.short.removesuffix(" latency"),
                optional=2,
                optional_interval=3,
                formats=EVERYWHERE if metric.name == _IN_A_TERMINAL else PAGES,
            )
            for metric in others
        ),
    )
    rows = tuple(_overheads(analysis, each, others) for each in analysis.arms)
    yield Section("result", f"Each arm against {against(report.study)}", columns, rows, (_reading(report),))


def _overheads(analysis: Analysis, each: ArmSummary, others: list[Metric]) -> tuple[object, ...]:
    middle = each.values[PRIMARY].median
    if each.is_baseline:
        made_of = runs_of_baseline(analysis, each)
        return (plain(each.arm, 60), made_of, middle, BASELINE, "", *("" for _ in others))
    finding = analysis.finding(each.arm, PRIMARY)
    further = (analysis.finding(each.arm, metric.name) for metric in others)
    return (plain(each.arm, 60), finding.estimate.n, middle, finding, finding.published, *further)


def _reading(report: Report) -> str:
    otherwise, none = unpaired(report.study), why_no_interval(report.analysis, PRIMARY)
    kind = f"95 % {interval_kind(report.study)}, not adjusted for multiple comparisons"
    stands = kind if none is None else f"Of throughput {none}"
    return (
        f"Relative to {against(report.study)}{', paired by block (n)' if otherwise is None else ''}: "
        f"-58 % throughput is 58 % less, +12 % latency is 12 % longer. {otherwise or stands}."
    )


def by_operation(report: Report) -> Iterator[Section]:
    """Yield the overheads by kind of operation, if the generator separates them; means only in a terminal."""
    analysis = report.analysis
    metrics = compared_by_operation(analysis)
    title = "By kind of operation"
    rows = tuple(
        (plain(each.arm, 60), *(analysis.finding(each.arm, metric.name) for metric in metrics))
        for each in analysis.arms
        if not each.is_baseline
    )
    if metrics:
        columns = (arm(), *(Column(metric.short, effect_and_published) for metric in metrics))
        yield Section("by-operation", title, columns, rows, under=True, formats=PAGES)
    means = tuple(
        _mean(analysis, each, metric)
        for metric in analysis.metrics
        if metric.operation and metric.name.endswith("latency_mean")
        for each in analysis.arms
        if each.values[metric.name].n
    )
    columns = (
        arm(),
        Column("operation", left=True),
        Column("mean, ms", amount),
        Column("overhead", of_finding),
        Column("published", published),
    )
    if means:
        yield Section("operation-means", title, columns, means, under=True, formats=TERMINAL)


def _mean(analysis: Analysis, each: ArmSummary, metric: Metric) -> tuple[object, ...]:
    first = (plain(each.arm, 80), metric.operation, each.values[metric.name].median)
    if each.is_baseline:
        return (*first, BASELINE, "")
    finding = analysis.finding(each.arm, metric.name)
    return (*first, finding, finding.published)


def repetitions(report: Report) -> Iterator[Section]:
    """Yield throughput and mean latencies in the form of the source; nothing if it has another.

    For a kind of operation, only the arms that have it.
    """
    if report.study.published_by != "min-max-mean":
        return
    analysis = report.analysis
    columns = (
        arm(),
        Column("n"),
        *(Column(title, amount) for title in ("smallest", "largest", "mean", "std. dev.")),
        Column("of means", percent),
        Column("overhead", of_finding, optional=1),
    )
    metrics = [
        metric
        for metric in (*known(analysis), *known_by_operation(analysis))
        if metric.name == PRIMARY or metric.name.endswith("latency_mean")
    ]
    counted = next((each.unit for each in analysis.arms if each.unit), "operations")
    for n, metric in enumerate(metrics):
        unit = f"{plain(counted, 20)}/s" if metric.name == PRIMARY else metric.unit
        rows = tuple(
            _repeated(analysis, each, metric)
            for each in analysis.arms
            if metric.operation is None or each.values[metric.name].n
        )
        note = (_REPEATED_READING,) if n == len(metrics) - 1 else ()
        title = f"{_REPEATED} of {metric.title}, {unit}"
        yield Section(f"repetitions-{n}", title, columns, rows, note, under=True)


def _repeated(analysis: Analysis, each: ArmSummary, metric: Metric) -> tuple[object, ...]:
    level = each.values[metric.name]
    first = (plain(each.arm, 80), level.n, level.smallest, level.largest, level.mean, level.stddev)
    if each.is_baseline:
        return (*first, "", BASELINE)
    finding = analysis.finding(each.arm, metric.name)
    return (*first, None if finding.as_published is None else finding.as_published.point, finding)


def blocks(report: Report) -> Iterator[Section]:
    """Yield the effect in each block: a column for each, or a row for each if there are too many."""
    findings = [one for one in report.analysis.findings if one.metric == PRIMARY and one.blocks]
    effects = {plain(one.arm, 60): dict(one.blocks) for one in findings}
    numbers = sorted({block for by_block in effects.values() for block in by_block})
    across = len(numbers) <= _MOST_COLUMNS
    titles = [f"block {block}" for block in numbers] if across else list(effects)
    columns = (arm() if across else Column("block", left=True), *(Column(title, percent) for title in titles))
    rows = (
        [(name, *(by_block.get(block) for block in numbers)) for name, by_block in effects.items()]
        if across
        else [(str(block), *(by_block.get(block) for by_block in effects.values())) for block in numbers]
    )
    if rows:
        fold = "Throughput block by block"
        yield Section("blocks", "Block by block", columns, tuple(rows), fold=fold, formats=PAGES)
