"""Latency over load of all arms, as rows of text."""

from __future__ import annotations

from collections.abc import Sequence

from tare.analyze.climb import Climb
from tare.report.content import Report
from tare.report.figures import amount
from tare.report.plain import plain

CLIMB_TITLE = "Latency over load"
_MOST_ROWS = 12
"""Most rates in a table; of more, an even selection is shown. The chart has all."""
_MISSED = "\N{DAGGER}"


def climbs(report: Report) -> Sequence[tuple[str, Climb]]:
    """Return arm and curve of the arms that searched a sustainable rate with the same bound; else nothing."""
    found = [(arm.arm, arm.climb) for arm in report.analysis.arms if arm.climb is not None]
    one_bound = len({(climb.quantile, climb.within_ms) for _, climb in found}) == 1
    return found if one_bound else ()


def climb_columns(report: Report) -> tuple[str, ...]:
    """Return the headings: the target rate, and each arm."""
    return ("rate/s", *(plain(arm, 40) for arm, _ in climbs(report)))


def climb_rows(report: Report) -> tuple[tuple[str, ...], ...]:
    """Return a row for each rate, with the cells of `climb_columns`, and one of the sustained rates."""
    curves = [climb for _, climb in climbs(report)]
    if not curves:
        return ()
    rates = sorted({step.rate_per_s for climb in curves for step in climb.steps})
    last = ("sustained", *(f"{amount(climb.rate_per_s)}/s" for climb in curves))
    return (*((amount(rate), *(_cell(climb, rate) for climb in curves)) for rate in _some(rates)), last)


def climb_reading(report: Report) -> str:
    """Explain the table and the chart."""
    curves = climbs(report)
    if not curves:
        return ""
    climb = curves[0][1]
    return (
        f"{climb.quantile} of latency in ms at each target rate, median over runs; the bound is "
        f"{climb.within_ms:g} ms. {_MISSED}: arrivals were missed. `-`: no reply. Sustained: the highest rate "
        "that met the bound, median over runs."
    )


def _cell(climb: Climb, rate: float) -> str:
    step = next((step for step in climb.steps if step.rate_per_s == rate), None)
    if step is None:
        return ""
    latency = "-" if step.latency_ms is None else amount(step.latency_ms)
    return f"{latency} {_MISSED}" if step.missed else latency


def _some(rates: Sequence[float]) -> Sequence[float]:
    """Select an even number of rates, always with the first and the last."""
    if len(rates) <= _MOST_ROWS:
        return rates
    return [rates[round(n * (len(rates) - 1) / (_MOST_ROWS - 1))] for n in range(_MOST_ROWS)]
