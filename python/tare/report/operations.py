"""Latency by kind of operation, for a terminal: a row an arm and kind."""

from __future__ import annotations

from rich.table import Column, Table
from rich.text import Text

from tare.report.arm_cell import ArmCell
from tare.report.content import Report
from tare.report.figures import NONE, amount, interval, percent, point


def operations_table(report: Report) -> Table | None:
    """Mean latency of each kind of operation in each arm that has it: median, overhead, interval, published.

    `None` where the generator does not tell kinds apart.
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
                found = analysis.finding(arm.arm, metric.name)
                published = NONE if found.published is None else percent(found.published)
                cells += [point(found), interval(found.estimate), published]
            table.add_row(ArmCell(arm.arm), *map(Text, cells))
    return table
