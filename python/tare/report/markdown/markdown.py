"""The report as Markdown, to paste into an issue or a README."""

from __future__ import annotations

import re

from tare.analyze.arms import ArmSummary
from tare.analyze.metrics import PRIMARY
from tare.plural import counted
from tare.report.content import Report
from tare.report.figures import NONE, amount, duration, interval, percent, point
from tare.report.known import compared, compared_by_operation
from tare.report.markdown.details import details
from tare.report.markdown.text import code, table, text
from tare.report.plain import plain
from tare.report.rows.bottleneck import LIMIT_READING, LIMIT_TITLE, limit_columns, limits_rows
from tare.report.rows.climb import CLIMB_TITLE, climb_columns, climb_reading, climb_rows
from tare.report.rows.latency_split import (
    LATENCY_SPLIT_COLUMNS,
    LATENCY_SPLIT_READING,
    LATENCY_SPLIT_TITLE,
    latency_split_rows,
)
from tare.report.rows.quantities import COLUMNS, READING, sections
from tare.report.rows.repetitions import REPETITION_COLUMNS, REPETITION_READING, repetitions
from tare.report.rows.strata import STRATA_TITLE, strata_of
from tare.report.words.answer import against, interval_kind, runs_of_baseline, unpaired, why_no_interval
from tare.report.words.notes import LONGEST, failures, warnings
from tare.report.words.summary import summary
from tare.report.words.verdicts import method, verdicts


def render(report: Report) -> str:
    """Return question, answer, tables, notes and details."""
    study = report.study
    lines = [
        f"# {text(study.question, 400)}",
        *_headlines(report),
        "",
        text(report.answer, 4000),
        "",
        f"Study `{code(study.name)}` at scale `{code(study.scale)}`: {_took(report)}.",
        "",
        *(f"- {fact.title}: {text(fact.text, 400)}" for fact in summary(report)),
        "",
        *_table(report),
        "",
        f"Relative to {text(against(study), 80)}{_intervals(report)}.",
        *_list("Verdicts", (*verdicts(report.analysis), *filter(None, [method(report.analysis)]))),
        *_by_operation(report),
        *_strata(report),
        *_repetitions(report),
        *([] if report.calibration is None else ["", text(report.calibration, 1200)]),
        *_quantities(report),
        *_list("Notes", (*failures(report.analysis), *report.notes, *report.legend, *report.notices)),
        *_list("Validity", warnings(report.analysis.alarms)),
        *_limits(report),
        *_climbs(report),
        *_latency_split(report),
        *_list("Deviations from the published study", study.deviations if study.source else ()),
    ]
    if study.source is not None:
        source = study.source
        lines += [
            "",
            f"Published: {text(source.authors)}, *{text(source.title)}* ({source.year}), <{_url(source.url)}>",
        ]
    return "\n".join([*lines, *details(report)]) + "\n"


def _intervals(report: Report) -> str:
    otherwise = unpaired(report.study)
    if otherwise is not None:
        return f". {otherwise}"
    none = why_no_interval(report.analysis, PRIMARY)
    kind = f"95 % {interval_kind(report.study)}, not adjusted for multiple comparisons"
    return f", paired by block (n); {none or kind}"


def _headlines(report: Report) -> list[str]:
    """Return a paragraph for each headline; grave ones are bold."""
    sentences = [(text(headline.text, 600), headline.grave) for headline in report.headlines]
    return [line for sentence, grave in sentences for line in ("", f"**{sentence}**" if grave else sentence)]


def _took(report: Report) -> str:
    spent = report.spent
    blocks = counted(len(report.analysis.blocks), "block")
    if report.study.imported is not None:
        return f"{counted(spent.attempts, 'imported run')} in {blocks}"
    return f"{counted(spent.attempts, 'attempt')} in {blocks}, {duration(spent.runs_s)} of machine time"


def _quantities(report: Report) -> list[str]:
    """Return a table for each quantity that the source defines."""
    lines: list[str] = []
    for section in sections(report.study.quantities, report.quantities):
        lines += ["", f"## {text(section.title)}", ""]
        lines += [text(section.published, 1000), ""] if section.published else []
        lines += ["| " + " | ".join(text(column) for column in COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
        lines += ["| " + " | ".join(text(cell) for cell in row) + " |" for row in section.rows]
    return [*lines, "", text(READING, 1000)] if lines else []


def _repetitions(report: Report) -> list[str]:
    """Return a table for each metric, in the form in which the source reports repetitions."""
    tables = repetitions(report)
    lines = [
        line
        for section in tables
        for line in ("", f"## {text(section.title)}", "", *table(REPETITION_COLUMNS, section.rows))
    ]
    return [*lines, "", text(REPETITION_READING, 1000)] if lines else []


def _limits(report: Report) -> list[str]:
    """Return the bottleneck of each arm, as far as traces show it."""
    rows = table(limit_columns(report), limits_rows(report))
    return ["", f"## {LIMIT_TITLE}", "", *rows, "", text(LIMIT_READING, 1000)] if rows else []


def _climbs(report: Report) -> list[str]:
    """Return latency over load, a column for each arm."""
    rows = table(climb_columns(report), climb_rows(report))
    return ["", f"## {CLIMB_TITLE}", "", *rows, "", text(climb_reading(report), 1000)] if rows else []


def _latency_split(report: Report) -> list[str]:
    """Return the client's share of each latency."""
    rows = table(LATENCY_SPLIT_COLUMNS, latency_split_rows(report))
    return ["", f"## {LATENCY_SPLIT_TITLE}", "", *rows, "", text(LATENCY_SPLIT_READING, 1000)] if rows else []


def _table(report: Report) -> list[str]:
    metrics = [metric for metric in compared(report.analysis) if metric.name != PRIMARY]
    titles = ["arm", "n", "throughput, median", "overhead", "95 % interval", "published"]
    titles += [metric.title for metric in metrics]
    rows = ["| " + " | ".join(titles) + " |", "|" + "---|" + "---:|" * (len(titles) - 1)]
    for arm in report.analysis.arms:
        cells = _baseline(report, arm) if arm.is_baseline else _cells(report, arm)
        cells += [NONE if arm.is_baseline else _latency(report, arm.arm, metric.name) for metric in metrics]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _by_operation(report: Report) -> list[str]:
    """Return a table of latencies by kind of operation, if the generator separates them."""
    metrics = compared_by_operation(report.analysis)
    if not metrics:
        return []
    titles = ["arm", *(metric.title for metric in metrics)]
    rows = ["", "| " + " | ".join(text(title) for title in titles) + " |", "|" + "---|" + "---:|" * len(metrics)]
    for arm in (each for each in report.analysis.arms if not each.is_baseline):
        cells = [text(arm.arm, 80), *(_latency(report, arm.arm, metric.name) for metric in metrics)]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def _strata(report: Report) -> list[str]:
    """Return published figures beside the results, by stratum."""
    strata = strata_of(report)
    if strata is None:
        return []
    return ["", f"## {STRATA_TITLE}", "", *table(strata.titles, strata.rows, left=3), "", text(strata.reading, 400)]


def _baseline(report: Report, arm: ArmSummary) -> list[str]:
    made_of = runs_of_baseline(report.analysis, arm) or NONE
    return [f"{text(arm.arm, 80)} (baseline)", made_of, amount(arm.values[PRIMARY].median), NONE, NONE, NONE]


def _cells(report: Report, arm: ArmSummary) -> list[str]:
    finding = report.analysis.finding(arm.arm, PRIMARY)
    estimate = finding.estimate
    middle = amount(arm.values[PRIMARY].median)
    published = percent(finding.published)
    return [text(arm.arm, 80), str(estimate.n), middle, point(finding), interval(estimate), published]


def _latency(report: Report, arm: str, metric: str) -> str:
    finding = report.analysis.finding(arm, metric)
    bounds = interval(finding.estimate)
    return point(finding) if bounds == NONE else f"{point(finding)} {bounds}"


def _list(title: str, items: tuple[str, ...]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {text(item, LONGEST)}" for item in items)] if items else []


def _url(value: str) -> str:
    return re.sub(r"[<>\s]", "", plain(value, 500))
