"""Findings by condition: what was published, what its own way makes of the runs, and what tare does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from rich.table import Column, Table
from rich.text import Text

from tare.analyze import Finding
from tare.analyze.metrics import PRIMARY, metric_named
from tare.report.content import Report
from tare.report.figures import NONE, interval, percent, point
from tare.report.plain import plain

TITLES = ("condition", "metric", "arm", "n", "published", "its way", "overhead", "95 % interval")
_TWO_DECIMALS = 2


@dataclass(frozen=True)
class Row:
    """A finding as `TITLES` has it."""

    cells: tuple[str, ...]


def strata_rows(report: Report) -> tuple[Row, ...]:
    """Every stratum, then all of them together where there are several; nothing where the study has none."""
    strata = report.analysis.strata
    if not strata:
        return ()
    together = (("all", report.analysis.findings),) if len(strata) > 1 else ()
    metrics = [PRIMARY, *(each.name for each in report.analysis.metrics if _told(each.name, each.operation))]
    telling = [factor for factor in strata[0].levels if len({each.levels[factor] for each in strata}) > 1]
    parts = [
        *(
            (_words({factor: each.levels[factor] for factor in telling or each.levels}), each.findings)
            for each in strata
        ),
        *together,
    ]
    return tuple(row for words, findings in parts for row in _rows(words, findings, metrics))


def strata_tables(report: Report) -> tuple[Table, ...]:
    """The same for a terminal, whose lines are too short for the condition: a table each, under its name."""
    made = []
    for words, rows in groupby(strata_rows(report), key=lambda row: row.cells[0]):
        columns = [
            Column(title, justify="left" if n < 2 or n == len(TITLES) - 2 else "right", no_wrap=n > 1)
            for n, title in enumerate(TITLES[1:])
        ]
        table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.title, table.title_justify, table.title_style = Text(words), "left", "bold"
        for row in rows:
            table.add_row(*(Text(cell) for cell in row.cells[1:]))
        made.append(table)
    return tuple(made)


def _told(name: str, operation: str | None) -> bool:
    return operation is not None and name.endswith("latency_mean")


def _rows(words: str, findings: tuple[Finding, ...], metrics: list[str]) -> Iterator[Row]:
    for metric in metrics:
        for finding in (each for each in findings if each.metric == metric):
            theirs = finding.as_published
            yield Row(
                (
                    words,
                    metric_named(metric).short.removesuffix(" latency"),
                    plain(finding.arm, 40),
                    str(finding.estimate.n),
                    NONE if finding.published is None else percent(finding.published, _TWO_DECIMALS),
                    NONE if theirs is None else percent(theirs.point, _TWO_DECIMALS),
                    point(finding),
                    interval(finding.estimate),
                )
            )


def _words(levels: Mapping[str, str]) -> str:
    return ", ".join(f"{plain(factor, 30)} {plain(level, 30)}" for factor, level in levels.items())
