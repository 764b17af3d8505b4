"""Quantities as the study's source defines them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tare.report.content import Report
from tare.report.figures import amount
from tare.report.plain import plain
from tare.report.section import Column, Section, arm, figure, share
from tare.study.values import PublishedRange, QuantityName

if TYPE_CHECKING:
    from tare.analyze.quantities import QuantityRow, Spread

TITLES: dict[QuantityName, str] = {
    "e_ovh": "E_ovh, execution time",
    "cpu_ovh": "CPU_ovh, CPU time used",
    "io_ovh_r": "IO_ovh,r, read from disk",
    "io_ovh_w": "IO_ovh,w, written to disk",
}
_READING = (
    "Mean (mean square error) of the runs; |overhead| is |arm - baseline| / baseline of the means, as the source "
    "defines it, so it is never negative, even for equal arms. With sign: tare's estimate, paired by block."
)


def quantities(report: Report) -> Iterator[Section]:
    """Yield a table for each quantity in the study's order; nothing if the study asks for none."""
    wanted = report.study.quantities
    if wanted is None:
        return
    yield Section("quantities", "As the source defines it", lead=(_READING,) if report.quantities else ())
    columns = (
        arm(),
        Column("by", left=True),
        Column("baseline", _spread, optional=1),
        Column("arm's", _spread, optional=1),
        Column("unit", left=True, optional=1),
        Column("|overhead|", share),
        Column("with its sign", figure),
    )
    for name, ranges in wanted.wanted.items():
        rows = _rows([one for one in report.quantities if one.quantity == name])
        yield Section(
            f"quantity-{name}",
            TITLES[name],
            columns if rows else (),
            rows,
            lead=(*_published(ranges), *(() if rows else ("No run reported it.",))),
            under=True,
            grouped=True,
        )


def _rows(entries: Sequence[QuantityRow]) -> tuple[tuple[object, ...], ...]:
    """Return the rows of all sources, grouped by arm in order of appearance."""
    arms = list(dict.fromkeys(one.arm for one in entries))
    return tuple(
        (plain(one.arm, 60), one.source, one.reference, one.value, one.unit, one.overhead, one.signed)
        for one in sorted(entries, key=lambda one: arms.index(one.arm))
    )


def _spread(spread: Spread) -> str:
    return f"{amount(spread.mean)} ({amount(spread.mse)})"


def _published(ranges: Sequence[PublishedRange]) -> Iterator[str]:
    """Format published ranges: `Published: 10 % at a CPU load of 65 to 75 %; 0 to 5 % above 80 %.`."""
    if ranges:
        yield f"Published: {'; '.join(_range(each) for each in ranges)}."


def _range(one: PublishedRange) -> str:
    low, high = (f"{100 * bound:g}" for bound in (one.low, one.high))
    size = f"{high} %" if low == high else f"{low} to {high} %"
    when = "" if one.when is None else f" {plain(one.when, 100)}"
    return f"{size}{when} ({plain(one.where, 100)})"
