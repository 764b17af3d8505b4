"""The figures of `make bench-protocol` as tables: for a terminal, and as Markdown for the journal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table as RichTable

from bench.protocol.costs import SEGMENT
from bench.protocol.figures import TARGETS, Figures
from bench.protocol.pools import MEASURE_S, TITLE
from tare.calibrate.pooled import Share


@dataclass(frozen=True)
class Grid:
    """A table, whatever it is written as."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(figures: Figures) -> tuple[Grid, ...]:
    """What was made, how often wrong, seconds here, seconds at published lengths, the injected effect."""
    return (
        Grid(
            "measured: the pools",
            ("pool", "studies", "machine s", "s a pair", "spread of log ratios"),
            tuple(
                (
                    name,
                    str(figures.studies[name]),
                    f"{figures.machine_s[name]:.0f}",
                    f"{figures.pair_s[name]:.1f}",
                    _percent(figures.spread[name]),
                )
                for name in figures.studies
            ),
        ),
        Grid(
            f"measured: intervals of {SEGMENT} rounds in a row that leave the truth out (nominal 5 %)",
            ("way", "identical, overlapping", "identical, disjoint", "injected, overlapping", "injected, disjoint"),
            tuple(
                (
                    one.way,
                    _counted(one.identical.overlapping),
                    _share(one.identical.disjoint),
                    _counted(one.injected.overlapping),
                    _share(one.injected.disjoint),
                )
                for one in figures.wrong
            ),
        ),
        Grid(
            f"seconds of an arm and its baseline, {MEASURE_S:g} s measured a run",
            ("way", "to", "measured", "computed", "computed, with the control", "times interleave (with it)"),
            tuple(
                (
                    f"{cost.way}{' (claimed, invalid)' if cost.claimed else ''}",
                    f"± {100 * cost.target:g} %",
                    _seconds(cost.measured_s),
                    _seconds(cost.computed_s),
                    _seconds(cost.with_control_s),
                    _times(cost.times_interleave),
                )
                for cost in figures.costs
            ),
        ),
        Grid(
            "computed, not measured: fixed runs of the published length with this machine's variances",
            (
                "study",
                "s a run",
                "runs",
                "half-width then",
                *_to("runs to"),
                *_to("s to"),
                *_to("times interleave,"),
            ),
            tuple(
                (
                    one.study,
                    f"{one.measure_s:g}",
                    str(one.runs),
                    "none" if one.width is None else f"± {100 * one.width:.2g} %",
                    *(str(runs) for runs in one.runs_to.values()),
                    *(_seconds(seconds) for seconds in one.seconds_to.values()),
                    *(_times(times) for times in one.times_interleave.values()),
                )
                for one in figures.published
            ),
        ),
        Grid(
            f"measured: the injected effect ({TITLE})",
            ("pool", "studies", "estimate", "truth", "bias"),
            tuple(
                (
                    name,
                    str(one.estimate.n),
                    _percent(one.estimate.point),
                    _percent(one.truth.point),
                    _percent(one.bias.point),
                )
                for name, one in figures.injected.items()
            ),
        ),
    )


def _to(words: str) -> tuple[str, ...]:
    return tuple(f"{words} ± {100 * target:g} %" for target in TARGETS)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def _seconds(value: float | None) -> str:
    return "not reached" if value is None else f"{value:.0f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def _counted(of: Share) -> str:
    return "-" if of.share is None else f"{100 * of.share:.0f} % of {of.of}"


def _share(of: Share) -> str:
    if of.share is None or of.low is None or of.high is None:
        return "-"
    return f"{100 * of.share:.0f} % [{100 * of.low:.0f}, {100 * of.high:.0f}] of {of.of}"


def markdown(figures: Figures) -> str:
    """For the journal."""
    one = figures.identity
    machine = f"{one.cpu_model}, {one.cpu_count} CPUs, {one.memory_gib} GiB, Linux {one.kernel}"
    lines = [f"{machine}, {one.engine} {one.engine_version}."]
    if figures.between is not None and figures.within is not None:
        between, within = (100 * math.sqrt(part) for part in (figures.between, figures.within))
        spreads = f"{between:.2f} % between restarts, {within:.2f} % of windows of 1 s within a run"
        lines += ["", f"Standard deviations of log rates, runs of an arm made together: {spreads}."]
    for grid in grids(figures):
        lines += ["", f"**{grid.title[0].upper()}{grid.title[1:]}**", "", _row(grid.columns)]
        lines += [_row(("---",) * len(grid.columns)), *(_row(row) for row in grid.rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def show(figures: Figures, console: Console) -> None:
    """For people."""
    for grid in grids(figures):
        table = RichTable(*grid.columns, title=grid.title, title_justify="left", box=None, pad_edge=False)
        for row in grid.rows:
            table.add_row(*row)
        console.print(table)
        console.print()
