"""Findings by condition: published figures, the source's own method, and tare's estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from rich.table import Column, Table
from rich.text import Text

from tare.analyze import Finding
from tare.analyze.metrics import PRIMARY, metric_named
from tare.report.arm_cell import ArmCell
from tare.report.content import Report
from tare.report.figures import NONE, interval, percent, point
from tare.report.plain import plain

STRATA_TITLE = "By condition, as published and by tare"
_TITLES = ("condition", "metric", "arm", "n", "published", "source's way", "overhead", "95 % interval")
_ARM, _PUBLISHED, _THEIRS = 2, 4, 5
_TWO_DECIMALS = 2

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Strata:
    """Findings by condition as text: condition, metric, arm and figures. `reading`: explains the table."""

    titles: Cells
    rows: tuple[Cells, ...]
    reading: str

    def conditions(self) -> Iterator[tuple[str, tuple[tuple[str, tuple[Cells, ...]], ...]]]:
        """Yield each condition with its metrics, each metric with its rows, starting at the arm."""
        for words, of_one in groupby(self.rows, key=itemgetter(0)):
            metrics = groupby(of_one, key=itemgetter(1))
            yield words, tuple((metric, tuple(row[2:] for row in rows)) for metric, rows in metrics)


def strata_of(report: Report) -> Strata | None:
    """Return every stratum, then all together if there are several; `None` if the study has none."""
    strata = report.analysis.strata
    if not strata:
        return None
    together = (("all", report.analysis.findings),) if len(strata) > 1 else ()
    metrics = [PRIMARY, *(each.name for each in report.analysis.metrics if _is_shown(each.name, each.operation))]
    telling = [factor for factor in strata[0].levels if len({each.levels[factor] for each in strata}) > 1]
    parts = [
        *(
            (_words({factor: each.levels[factor] for factor in telling or each.levels}), each.findings)
            for each in strata
        ),
        *together,
    ]
    rows = [row for words, findings in parts for row in _rows(words, findings, metrics)]
    nothing = {n for n in (_PUBLISHED, _THEIRS) if all(row[n] == NONE for row in rows)}
    shown = [n for n in range(len(_TITLES)) if n not in nothing]
    several = ", and for all together the mean of these changes" if together else ""
    theirs = f" Source's method: the relative change of averages over runs{several}, without an interval."
    return Strata(
        titles=tuple(_TITLES[n] for n in shown),
        rows=tuple(tuple(row[n] for n in shown) for row in rows),
        reading=f"Overhead and interval are tare's.{'' if _THEIRS in nothing else theirs}",
    )


def strata_tables(strata: Strata) -> tuple[Table, ...]:
    """Make tables for a terminal, whose lines are too short for the condition: one for each, under its name."""
    made = []
    for words, rows in groupby(strata.rows, key=itemgetter(0)):
        columns = [
            Column(title, justify="left" if n < 2 or n == len(strata.titles) - 2 else "right", no_wrap=n > 1)
            for n, title in enumerate(strata.titles[1:])
        ]
        table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.title, table.title_justify, table.title_style = Text(words), "left", "bold"
        for row in rows:
            table.add_row(*(ArmCell(cell) if n == _ARM else Text(cell) for n, cell in enumerate(row) if n))
        made.append(table)
    return tuple(made)


def _is_shown(name: str, operation: str | None) -> bool:
    return operation is not None and name.endswith("latency_mean")


def _rows(words: str, findings: tuple[Finding, ...], metrics: list[str]) -> Iterator[Cells]:
    for metric in metrics:
        for finding in (each for each in findings if each.metric == metric):
            theirs = finding.as_published
            yield (
                words,
                metric_named(metric).short.removesuffix(" latency"),
                plain(finding.arm, 40),
                str(finding.estimate.n),
                NONE if finding.published is None else percent(finding.published, _TWO_DECIMALS),
                NONE if theirs is None else percent(theirs.point, _TWO_DECIMALS),
                point(finding),
                interval(finding.estimate),
            )


def _words(levels: Mapping[str, str]) -> str:
    return ", ".join(f"{plain(factor, 30)} {plain(level, 30)}" for factor, level in levels.items())
