"""The overhead table for a terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from tare.analyze import Finding
from tare.analyze.arms import ArmSummary
from tare.analyze.metrics import PRIMARY, metric_named
from tare.plural import counted
from tare.report.arm_cell import ArmCell
from tare.report.content import Report
from tare.report.explain.words import sentence
from tare.report.figures import NONE, WITHIN_RESOLUTION, amount, duration, interval, percent, point
from tare.report.plain import plain
from tare.report.rows.bottleneck import LIMIT_READING, LIMIT_TITLE, WIDE_ONLY, limit_columns, limits_rows
from tare.report.rows.climb import CLIMB_TITLE, climb_columns, climb_reading, climb_rows
from tare.report.rows.latency_split import (
    LATENCY_SPLIT_COLUMNS,
    LATENCY_SPLIT_READING,
    LATENCY_SPLIT_TITLE,
    latency_split_rows,
)
from tare.report.rows.quantities import COLUMNS, READING, Section, sections
from tare.report.rows.repetitions import REPETITION_COLUMNS, REPETITION_READING, repetitions
from tare.report.rows.strata import strata_of, strata_tables
from tare.report.words.answer import against, interval_kind, runs_of_baseline, unpaired, why_no_interval
from tare.report.words.notes import LONGEST, failures, warnings
from tare.report.words.verdicts import method, verdicts

_ARMS_ABREAST = 4
"""Most curves side by side in one table."""
_WIDE = 100
"""From this width on, latency shows its interval too."""
_NARROW = 80
"""Below this width, only the overhead of throughput: further columns would squeeze the arm's name."""
_ANY_WIDTH = 1000
"""Wider than any table, to measure how wide one would be."""
_OVERHEAD_COLUMNS = (0, 1, 3, 4)
_LATENCY = "latency_p95"
_SHORTEST_ARM, _LONGEST_ARM = 10, 24


def operations_table(report: Report) -> Table | None:
    """Return mean latency by kind of operation and arm: median, overhead, interval, published.

    `None` if the generator does not separate kinds.
    """
    if not any(metric.operation for metric in report.analysis.metrics):
        return None
    columns = [
        Column("arm", max_width=24),
        Column("operation", overflow="fold"),
        Column("mean, ms", justify="right", no_wrap=True),
        Column("overhead", justify="right", no_wrap=True),
        Column("95 % interval", no_wrap=True),
        Column("published", justify="right", no_wrap=True),
    ]
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    analysis = report.analysis
    for metric in (each for each in analysis.metrics if each.operation and each.name.endswith("latency_mean")):
        for arm in (each for each in analysis.arms if each.values[metric.name].n):
            cells = [metric.operation or "", amount(arm.values[metric.name].median)]
            if arm.is_baseline:
                cells += ["baseline", "", ""]
            else:
                finding = analysis.finding(arm.arm, metric.name)
                published = NONE if finding.published is None else percent(finding.published)
                cells += [point(finding), interval(finding.estimate), published]
            table.add_row(ArmCell(arm.arm), *map(Text, cells))
    return table


def render(report: Report, *, width: int = 100, colour: bool = False) -> str:
    """Return the report as text of at most `width` columns; `colour`: with escape sequences."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, color_system=system)
    study = report.study
    console.print(Text(f"{plain(study.name, 80)} at scale {plain(study.scale, 40)}", style="bold"))
    console.print(Text(plain(study.question, 400)))
    for headline in report.headlines:
        console.print(Text(headline.text, style="bold red" if headline.grave else "dim"))
    console.print()
    console.print(_table(report, width))
    console.print()
    strata = strata_of(report)
    for table in (operations_table(report), *(() if strata is None else strata_tables(strata))):
        if table is not None:
            console.print(table)
            console.print()
    if strata is not None:
        console.print(Text(strata.reading, style="dim"))
        console.print()
    console.print(Text(report.answer))
    _verdicts(report, console)
    _explanation(console, report)
    _quantities(console, report)
    _repetitions(console, report)
    legend = report.legend if WITHIN_RESOLUTION in out.getvalue() else ()
    for note in (*failures(report.analysis), *report.notes, *legend, *report.notices):
        console.print(_item(plain(note, 400)))
    if report.calibration is not None:
        console.print(_item(plain(report.calibration, 1200)))
    if report.analysis.alarms:
        console.print(Text("Validity", style="bold"))
    for warning in warnings(report.analysis.alarms):
        console.print(_item(plain(warning, LONGEST)))
    if report.study.disk_bound:
        _limits(console, report)
    _climbs(console, report)
    _latency_split(console, report)
    console.print(Text(_reading(report), style="dim"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _fitting(console: Console, whole: Table, narrow: Table) -> Table:
    """Return the whole table if the terminal is wide enough for it, else the narrow one."""
    needed = console.measure(whole, options=console.options.update_width(_ANY_WIDTH)).maximum
    return whole if needed <= console.width else narrow


def _explanation(console: Console, report: Report) -> None:
    """Print a sentence for each arm, if stacks were sampled."""
    if report.explanation is None:
        return
    console.print(Text("Where the time goes", style="bold"))
    for arm in report.explanation.arms:
        console.print(_item(plain(sentence(arm), 400)))
    console.print(Text("`tare explain STORE ARM` shows each part with its interval.", style="dim"))
    console.print()


def _quantities(console: Console, report: Report) -> None:
    """Print the source's own quantities; narrow terminals leave out the means, so that no figure is cut."""
    for section in sections(report.study.quantities, report.quantities):
        table = _fitting(
            console, _quantity_table(section, range(1, len(COLUMNS))), _quantity_table(section, (1, 5, 6, 7))
        )
        console.print()
        console.print(Text(section.title, style="bold"))
        if section.published:
            console.print(Text(section.published))
        console.print(table if section.rows else Text("No run reported it."))
    if report.quantities:
        console.print(Text(READING, style="dim"))
        console.print()


def _quantity_table(section: Section, shown: Sequence[int]) -> Table:
    """Make a table with an arm's sources below its name. `shown`: indexes of `COLUMNS`, the source first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for n in shown:
        table.add_column(COLUMNS[n], no_wrap=n > 1, overflow="fold", justify="left" if n in (1, 4, 7) else "right")
    for arm, rows in section.by_arm:
        table.add_row(Text(arm, style="dim"))
        for row in rows:
            table.add_row(Text(f"  {row[0]}"), *(Text(row[n - 1]) for n in shown[1:]))
    return table


def _repetitions(console: Console, report: Report) -> None:
    """Print repetitions; narrow terminals leave out tare's own estimate, which the overhead table has."""
    tables = repetitions(report)
    for section in tables:
        console.print()
        console.print(Text(section.title, style="bold"))
        whole, narrow = (
            _plain_table(REPETITION_COLUMNS, section.rows, range(len(REPETITION_COLUMNS) - left_out))
            for left_out in (0, 2)
        )
        console.print(_fitting(console, whole, narrow))
    if tables:
        console.print(Text(REPETITION_READING, style="dim"))
        console.print()


def _limits(console: Console, report: Report) -> None:
    """Print the bottlenecks; narrow terminals leave out requests."""
    rows = limits_rows(report)
    if rows:
        console.print(Text(LIMIT_TITLE, style="bold"))
        columns = limit_columns(report)
        narrow = [at for at, title in enumerate(columns) if title not in WIDE_ONLY]
        tables = [_plain_table(columns, rows, shown) for shown in (range(len(columns)), narrow)]
        console.print(_fitting(console, *tables))
        console.print(Text(LIMIT_READING, style="dim"))
        console.print()


def _climbs(console: Console, report: Report) -> None:
    """Print latency over load; arms that do not fit side by side come in further tables."""
    rows, columns = climb_rows(report), climb_columns(report)
    if not rows:
        return
    console.print(Text(CLIMB_TITLE, style="bold"))
    for first in range(1, len(columns), _ARMS_ABREAST):
        shown = (0, *range(first, min(first + _ARMS_ABREAST, len(columns))))
        console.print(_plain_table(columns, rows, shown))
    console.print(Text(climb_reading(report), style="dim"))
    console.print()


def _latency_split(console: Console, report: Report) -> None:
    """Print where the latency went; narrow terminals show only the client's share."""
    rows = latency_split_rows(report)
    if rows:
        console.print(Text(LATENCY_SPLIT_TITLE, style="bold"))
        tables = [
            _plain_table(LATENCY_SPLIT_COLUMNS, rows, shown)
            for shown in (range(len(LATENCY_SPLIT_COLUMNS)), (0, 1, 2, 5, 7))
        ]
        console.print(_fitting(console, *tables))
        console.print(Text(LATENCY_SPLIT_READING, style="dim"))
        console.print()


def _plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> Table:
    """Make a table of the shown columns, right-aligned except the arm's and the last."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for n in shown:
        if n == 0:
            table.add_column(titles[n], min_width=_SHORTEST_ARM, max_width=_LONGEST_ARM)
        else:
            table.add_column(titles[n], no_wrap=True, justify="left" if n == len(titles) - 1 else "right")
    for row in rows:
        table.add_row(*(Text(row[n]) if n else ArmCell(row[n]) for n in shown))
    return table


def _verdicts(report: Report, console: Console) -> None:
    lines = verdicts(report.analysis)
    if not lines:
        return
    console.print(Text("Verdicts", style="bold"))
    for line in lines:
        console.print(_item(line))
    how = method(report.analysis)
    if how is not None:
        console.print(Text(how, style="dim"))


def _table(report: Report, width: int) -> Table:
    columns = [
        Column("arm", max_width=_LONGEST_ARM),
        Column("n", justify="right"),
        Column(f"{_unit(report)}/s", justify="right", no_wrap=True),
        Column("throughput", justify="right", no_wrap=True),
        Column("95 % interval", justify="left", no_wrap=True),
        Column("published", justify="right", no_wrap=True),
        Column("p95 latency" if width >= _WIDE else "p95", justify="right", no_wrap=True),
        Column("95 % interval", justify="left", no_wrap=True),
    ]
    shown = range(len(columns) if width >= _WIDE else len(columns) - 1) if width >= _NARROW else _OVERHEAD_COLUMNS
    chosen = [columns[n] for n in shown]
    table = Table(*chosen, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for arm in report.analysis.arms:
        cells = _baseline(report, arm) if arm.is_baseline else _row(report, arm)
        table.add_row(*(cells[n] for n in shown))
    return table


def _baseline(report: Report, arm: ArmSummary) -> list[RenderableType]:
    made_of = runs_of_baseline(report.analysis, arm)
    return [ArmCell(arm.arm), *map(Text, (made_of, amount(arm.values[PRIMARY].median), "baseline", "", "", "", ""))]


def _row(report: Report, arm: ArmSummary) -> list[RenderableType]:
    throughput = report.analysis.finding(arm.arm, PRIMARY)
    latency = report.analysis.finding(arm.arm, _LATENCY)
    return [
        ArmCell(arm.arm),
        Text(str(throughput.estimate.n)),
        Text(amount(arm.values[PRIMARY].median)),
        Text(point(throughput), style=_style(throughput)),
        Text(interval(throughput.estimate)),
        Text(NONE if throughput.published is None else percent(throughput.published)),
        Text(point(latency), style=_style(latency)),
        Text(interval(latency.estimate)),
    ]


def _style(finding: Finding) -> str:
    """Red for worse and green for better if the interval supports it; the figures say the same without colour."""
    if not finding.borne_out or finding.estimate.point is None:
        return ""
    better = (finding.estimate.point > 0) == metric_named(finding.metric).more_is_better
    return "green" if better else "bold red"


def _item(note: str) -> Table:
    """Make a list item with a hanging indent."""
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(Text("*"), Text(note))
    return row


def _unit(report: Report) -> str:
    unit = next((arm.unit for arm in report.analysis.arms if arm.unit), "operations")
    return "trans." if unit == "transactions" else plain(unit, 10)


def _reading(report: Report) -> str:
    spent = report.spent
    took = f"{counted(spent.attempts, 'attempt')}, {duration(spent.runs_s)} of machine time"
    took = counted(spent.attempts, "imported run") if report.study.imported else took
    otherwise = unpaired(report.study)
    paired = ", paired by block (n)" if otherwise is None else ""
    none = why_no_interval(report.analysis, PRIMARY)
    kind = f"95 % {interval_kind(report.study)}, not adjusted for multiple comparisons"
    stands = kind if none is None else f"Of throughput {none}"
    return (
        f"Relative to {against(report.study)}{paired}: -58 % throughput is 58 % less, "
        "+12 % latency is 12 % longer. "
        f"{otherwise or stands}. {took}."
    )
