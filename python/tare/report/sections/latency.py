"""Latency: where it went, and its shift at each quantile."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.metrics import METRICS
from tare.analyze.statistics.quantile_shift import PERCENTS, Quantile, QuantileShift
from tare.report.content import Report
from tare.report.figures import NONE, WITHIN_RESOLUTION, amount, decimals_of, interval, percent
from tare.report.plain import plain
from tare.report.section import PAGE, PAGES, Cell, Column, Section, arm, share

_P95 = METRICS["latency_p95"].name
_SPLIT_READING = (
    "Of requests around each percentile, in ms, medians over runs. Sent late: from the intended time until the "
    "client noticed. Waiting: until it was sent, because its connection had other requests in flight. Wire and "
    "server: until the kernel had the reply. Unread: until the client had read it. The client itself causes sent "
    "late and unread."
)
_STALLS = (
    "The generator is a closed loop: its clients wait while the server stalls, so latencies understate long stalls."
)
_SHIFT_READING = (
    "Shift of latency at each quantile against the baseline, paired by block, with a 95 % interval for each "
    "quantile."
)


def latency_split(report: Report) -> Iterator[Section]:
    """Yield a row for each arm and percentile whose latency was taken apart."""
    rows = tuple(
        (
            plain(each.arm, 80),
            percentile,
            one.lag_ms + one.waiting_ms + one.server_ms + one.unread_ms,
            one.lag_ms,
            one.waiting_ms,
            one.server_ms,
            one.unread_ms,
            one.client,
        )
        for each in report.analysis.arms
        for percentile, one in each.latency_split.items()
    )
    columns = (
        arm(),
        Column("of"),
        Column("ms", amount),
        Column("sent late", amount, optional=1),
        Column("waiting", amount, optional=1),
        Column("wire and server", amount),
        Column("unread", amount, optional=1),
        Column("due to the client", share),
    )
    if rows:
        yield Section("latency-split", "Where the latency went", columns, rows, (_SPLIT_READING,), under=True)


def latency(report: Report) -> Iterator[Section]:
    """Yield the section of latency's charts, and the shifts in figures."""
    pointed = any(one.metric == _P95 and one.estimate.point is not None for one in report.analysis.findings)
    if pointed or report.shifts:
        lead = (_STALLS,) if report.blind_to_stalls else ()
        yield Section("latency", "Latency", lead=lead, formats=PAGES if lead or report.shifts else PAGE)
    if report.shifts:
        percents = [
            each
            for each in PERCENTS
            if any(each == one.percent for shift in report.shifts for one in shift.quantiles)
        ]
        columns = (arm(), Column("n"), *(Column(label(each), _shift) for each in percents))
        yield Section(
            "shift",
            "By quantile",
            columns,
            tuple(_row(shift, percents) for shift in report.shifts),
            (_SHIFT_READING,),
            under=True,
            fold="The shifts in figures",
            formats=PAGES,
        )


def _row(shift: QuantileShift, percents: list[float]) -> tuple[object, ...]:
    shifts = {one.percent: one for one in shift.quantiles}
    counts = {one.estimate.n for one in shift.quantiles}
    return (plain(title(shift, 60), 90), max(counts), *(shifts.get(each) for each in percents))


def label(percent_of_events: float) -> str:
    """Format a quantile: `p95`, `p99.9`."""
    return f"p{percent_of_events:g}"


def title(one: QuantileShift, longest: int = 40) -> str:
    """Name the arm, with the kind of operation if there are several."""
    name = plain(one.arm, longest)
    return name if one.operation is None else f"{name}, {plain(one.operation, 20)}"


def shifted(one: Quantile) -> str:
    """Format a shift: `+8.5 % [+6.1, +10.9]`, or marked `+0.8 %† [-16, +22]` if the generator cannot resolve it."""
    cell = _shift(one)
    return cell.text if cell.interval == NONE else f"{cell.text} {cell.interval}"


def _shift(one: Quantile) -> Cell:
    mark = "" if one.resolved else WITHIN_RESOLUTION
    return Cell(percent(one.estimate.point, decimals_of(one.estimate)) + mark, interval(one.estimate))
