"""Latency over load of all arms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tare.analyze.climb import Climb, Step
from tare.report.content import Report
from tare.report.figures import amount
from tare.report.plain import plain
from tare.report.section import Column, Section

_MOST_ROWS = 12
"""Most rates in a table; of more, an even selection is shown. The chart has all."""
_ARMS_ABREAST = 4
_MISSED = "\N{DAGGER}"


def climbs(report: Report) -> Sequence[tuple[str, Climb]]:
    """Return arm and curve of the arms that searched a sustainable rate with the same bound; else nothing."""
    found = [(arm.arm, arm.climb) for arm in report.analysis.arms if arm.climb is not None]
    one_bound = len({(climb.quantile, climb.within_ms) for _, climb in found}) == 1
    return found if one_bound else ()


def climb(report: Report) -> Iterator[Section]:
    """Yield a row for each rate and one of the sustained rates, a column for each arm."""
    curves = climbs(report)
    if not curves:
        return
    first = curves[0][1]
    rates = sorted({step.rate_per_s for _, curve in curves for step in curve.steps})
    steps = [(amount(rate), *(_step(curve, rate) for _, curve in curves)) for rate in _some(rates)]
    sustained = ("sustained", *(f"{amount(curve.rate_per_s)}/s" for _, curve in curves))
    note = (
        f"{first.quantile} of latency in ms at each target rate, median over runs; the bound is "
        f"{first.within_ms:g} ms. {_MISSED}: arrivals were missed. `-`: no reply. Sustained: the highest rate "
        "that met the bound, median over runs."
    )
    columns = (Column("rate/s", left=True), *(Column(plain(arm, 40), _latency) for arm, _ in curves))
    yield Section("climb", "Latency over load", columns, (*steps, sustained), (note,), abreast=_ARMS_ABREAST)


def _step(curve: Climb, rate: float) -> Step | str:
    return next((step for step in curve.steps if step.rate_per_s == rate), "")


def _latency(step: Step) -> str:
    latency = "-" if step.latency_ms is None else amount(step.latency_ms)
    return f"{latency} {_MISSED}" if step.missed else latency


def _some(rates: Sequence[float]) -> Sequence[float]:
    """Select an even number of rates, always with the first and the last."""
    if len(rates) <= _MOST_ROWS:
        return rates
    return [rates[round(n * (len(rates) - 1) / (_MOST_ROWS - 1))] for n in range(_MOST_ROWS)]
