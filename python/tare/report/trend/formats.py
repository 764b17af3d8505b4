"""A trend for a terminal, as Markdown and as a versioned JSON file."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any, Literal

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from tare.analyze.trend import Series
from tare.report.markdown.text import text
from tare.report.plain import plain
from tare.report.trend.content import READING, Trend, rows, title
from tare.version import __version__

COLUMNS = ("when", "store", "n", "overhead", "95 % interval", "")


def terminal(trend: Trend, *, width: int = 100, colour: bool = False) -> str:
    """Return the trend as text of at most `width` columns; `colour`: with escape sequences."""
    out = io.StringIO()
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, color_system=system)
    study = trend.stores[0].recorded.plan.study
    head = f"{plain(study.name, 80)} at scale {plain(study.scale, 40)}, {len(trend.stores)} stores"
    console.print(Text(head, style="bold"))
    console.print(Text(trend.answer, style="bold"))
    for series in trend.series:
        console.print()
        console.print(Text(title(series)))
        table = Table(
            *(
                Column(name, justify="right" if name in COLUMNS[2:4] else "left", no_wrap=name in COLUMNS[2:5])
                for name in COLUMNS
            ),
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            header_style="dim",
        )
        changed = {step.at for step in series.steps}
        for point, cells in zip(series.points, rows(trend, series), strict=True):
            table.add_row(*map(Text, cells), style="bold" if point.store in changed else "")
        console.print(table)
    console.print()
    console.print(Text(READING, style="dim"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def markdown(trend: Trend) -> str:
    """Return the answer and a table for each series."""
    study = trend.stores[0].recorded.plan.study
    lines = [f"# {text(study.name, 80)} at scale {text(study.scale, 40)}, {len(trend.stores)} stores", ""]
    lines += [text(trend.answer, 2000)]
    for series in trend.series:
        lines += [
            "",
            f"## {text(title(series), 160)}",
            "",
            f"| {' | '.join(COLUMNS)} |",
            "|---|---|---:|---:|---|---|",
        ]
        lines += [f"| {' | '.join(text(cell, 400) for cell in cells)} |" for cells in rows(trend, series)]
    return "\n".join([*lines, "", text(READING, 800)]) + "\n"


def as_json(trend: Trend) -> str:
    """Return every figure; effects are fractions."""
    study = trend.stores[0].recorded.plan.study
    tree = {
        "format": 1,
        "tare": __version__,
        "study": study.name,
        "scale": study.scale,
        "answer": trend.answer,
        "stores": [
            {
                "store": kept.name,
                "began_at": kept.began_at,
                "unlike": [asdict(each) for each in trend.unlike.get(at, ())],
            }
            for at, kept in enumerate(trend.stores)
        ],
        "series": [_series(each) for each in trend.series],
    }
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def _series(series: Series) -> dict[str, Any]:
    return {
        "arm": series.arm,
        "metric": series.metric,
        "between": series.between,
        "points": [
            {
                "store": each.store,
                "point": each.finding.estimate.point,
                "low": each.finding.estimate.low,
                "high": each.finding.estimate.high,
                "n": each.finding.estimate.n,
                "why": each.why or each.finding.estimate.why,
            }
            for each in series.points
        ],
        "changes": [
            {
                "from": step.at,
                "point": step.estimate.point,
                "low": step.estimate.low,
                "high": step.estimate.high,
                "p": step.p,
            }
            for step in series.steps
        ],
    }
