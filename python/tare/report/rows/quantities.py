"""Quantities as the study's source defines them, as rows of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tare.report.content import Report
from tare.report.figures import NONE, amount, decimals_of, interval, percent
from tare.report.plain import plain
from tare.run.record import RunRecord
from tare.study.values import PublishedRange, Quantities, QuantityName

if TYPE_CHECKING:
    import polars as pl

    from tare.analyze.quantities import QuantityRow, WatchedTrace

TITLES: dict[QuantityName, str] = {
    "e_ovh": "E_ovh, execution time",
    "cpu_ovh": "CPU_ovh, CPU time used",
    "io_ovh_r": "IO_ovh,r, read from disk",
    "io_ovh_w": "IO_ovh,w, written to disk",
}
COLUMNS = ("arm", "by", "baseline", "arm's", "unit", "|overhead|", "with its sign", "95 % interval")
READING = (
    "Mean (mean square error) of the runs; |overhead| is |arm - baseline| / baseline of the means, as the source "
    "defines it, so it is never negative, even for equal arms. With sign: tare's estimate, paired by block."
)


Raw = Callable[[RunRecord, str], Path]
"""Returns the path of a record's raw file."""
_MONITORS = "monitors"
_TRACE = f"{_MONITORS}/probe/trace"
_KEPT = "kept"
"""Column of a tool's samples: whether the study keeps the sample."""


def with_quantities(report: Report, records: Sequence[RunRecord], raw: Raw) -> Report:
    """Add the quantities that the study's source defines, computed from records and traces.

    Damaged files are left out, and the notices name them. Raises `StoreError` for a trace without what is computed
    with.
    """
    if report.study.quantities is None:
        return report
    from tare.analyze.quantities import (
        quantities,  # what reads traces is slow to import, and few studies ask for it
    )
    from tare.parquet import readable

    unread: list[str] = []
    with readable("a trace of the study's runs"):
        rows = quantities(report.study, records, lambda record: _what_is_whole(record, raw, unread))
    return replace(report, quantities=rows, unread=tuple(dict.fromkeys((*report.unread, *unread))))


def _what_is_whole(record: RunRecord, raw: Raw, unread: list[str]) -> WatchedTrace:
    """Read the recordings of a run; nothing of one with a damaged file, which goes to `unread`."""
    from tare.analyze.quantities import WatchedTrace
    from tare.analyze.views.summary import not_all_shown
    from tare.errors import StoreError
    from tare.parquet import readable

    try:
        with readable(str(raw(record, _MONITORS))):
            return _seen(record, raw)
    except StoreError as error:
        unread.append(not_all_shown(record, error))
        return WatchedTrace()


def _seen(record: RunRecord, raw: Raw) -> WatchedTrace:
    from tare.analyze.hosts import other_hosts
    from tare.analyze.quantities import WatchedTrace
    from tare.run.monitoring.watch import CLIENT
    from tare.store.trace import is_trace, read_trace

    path, further = raw(record, _TRACE), []
    for host in other_hosts(record):
        there = raw(record, host.trace)
        if host.of != CLIENT and is_trace(there):
            further.append((host, read_trace(there)))
    return WatchedTrace(
        read_trace(path) if is_trace(path) else None,
        _observed(raw(record, _MONITORS)),
        tuple(further),
        one_kernel=bool((record.between or {}).get("one_boot")),
    )


def _observed(monitors: Path) -> pl.DataFrame | None:
    """Return the kept samples of all tools that watched the run: docs/reference/monitors.md."""
    import polars as pl

    from tare.analyze.views.compute import SCHEMA
    from tare.analyze.views.summary import read_samples

    tables = [read_samples(path) for path in sorted(monitors.glob("*.parquet"))]
    kept = [table.filter(pl.col(_KEPT)) for table in tables if {*SCHEMA, _KEPT} <= set(table.columns)]
    alike = [table.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()) for table in kept]
    return pl.concat(alike) if alike else None


@dataclass(frozen=True)
class Section:
    """One quantity: its title, what was published about it, and rows with the cells of `COLUMNS`."""

    title: str
    published: str
    rows: tuple[tuple[str, ...], ...]

    @property
    def by_arm(self) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
        """Each arm with its rows, without their first cell."""
        grouped = groupby(self.rows, key=lambda row: row[0])
        return tuple((arm, tuple(row[1:] for row in rows)) for arm, rows in grouped)


def sections(wanted: Quantities | None, entries: Sequence[QuantityRow]) -> tuple[Section, ...]:
    """Return the sections in the study's order; nothing if the study asks for none."""
    if wanted is None:
        return ()
    return tuple(
        Section(TITLES[name], _published(ranges), _rows([one for one in entries if one.quantity == name]))
        for name, ranges in wanted.wanted.items()
    )


def _rows(entries: Sequence[QuantityRow]) -> tuple[tuple[str, ...], ...]:
    """Return the rows of all sources, grouped by arm in order of appearance."""
    arms = list(dict.fromkeys(one.arm for one in entries))
    return tuple(_row(one) for one in sorted(entries, key=lambda one: arms.index(one.arm)))


def _row(one: QuantityRow) -> tuple[str, ...]:
    estimate = one.signed
    return (
        plain(one.arm, 60),
        one.source,
        f"{amount(one.reference.mean)} ({amount(one.reference.mse)})",
        f"{amount(one.value.mean)} ({amount(one.value.mse)})",
        one.unit,
        NONE if one.overhead is None else percent(one.overhead, signed=False),
        percent(estimate.point, decimals_of(estimate)),
        interval(estimate),
    )


def _published(ranges: Sequence[PublishedRange]) -> str:
    """Format published ranges: `Published: 10 % at a CPU load of 65 to 75 %; 0 to 5 % above 80 %.`."""
    if not ranges:
        return ""
    return f"Published: {'; '.join(_range(each) for each in ranges)}."


def _range(one: PublishedRange) -> str:
    low, high = (f"{100 * bound:g}" for bound in (one.low, one.high))
    size = f"{high} %" if low == high else f"{low} to {high} %"
    when = "" if one.when is None else f" {plain(one.when, 100)}"
    return f"{size}{when} ({plain(one.where, 100)})"
