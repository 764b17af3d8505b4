"""Rules on the windows of a measure phase: warm-up and change points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tare.analyze.statistics.series import mser5
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share, shift
from tare.record.measurement import Window
from tare.record.run_record import RunRecord
from tare.record.swap_halves import windows_kept

RISE = 0.02
"""Largest relative difference of the beginning from the rest: the target width of an overhead."""
STEP = 0.05
"""Least difference of the log medians before and after a change point."""
_FEWEST_FOR_MSER = 50
_FEWEST_FOR_CHANGE = 20


def warm_up(evidence: Evidence) -> Iterator[Alarm]:
    """The beginning of the measure phase is faster or slower than the rest, over all runs of an arm.

    The beginning is what MSER-5 would cut off the arm's mean series (Welch averaging over replications, The
    Statistical Analysis of Simulation Results, 1983), or a quarter of the windows if there are fewer than 50.
    Alarm: by more than `RISE`, and by a t interval of 99 % over the arm's runs that excludes zero.
    """
    for arm in evidence.arms:
        long = [
            (run, windows) for run in _runs_with_windows(evidence, arm, 4) if len(windows := _windows(run)) >= 4
        ]
        if len(long) < 4:
            continue
        length = min(len(windows) for _, windows in long)
        series = [windows[:length] for _, windows in long]
        cut = _beginning([float(each) for each in np.asarray(series).mean(axis=0)])
        ratio = shift([math.log(np.mean(one[:cut]) / np.mean(one[cut:])) for one in series]) if cut else None
        if ratio and ratio.real and abs(ratio.mean) > RISE:
            way = "slower" if ratio.mean < 0 else "faster"
            yield Alarm(
                "warm-up",
                arm,
                f"the first {cut} of {length} windows were {share(abs(math.expm1(ratio.mean)))} {way}",
                ids([run for run, _ in long]),
                "increase workload.warmup_s by at least that much",
            )


def change_point(evidence: Evidence) -> Iterator[Alarm]:
    """A run's throughput changes permanently in the middle of its measure phase.

    Pettitt, "A non-parametric approach to the change-point problem", Appl. Stat. 28 (1979): K = max |U_t|,
    p ≈ 2 exp(-6 K² / (n³ + n²)). Alarm: p below 0.01 over the number of runs (Bonferroni), and medians that
    differ by more than `STEP`. Needs 20 windows. In a duet, windows are relative to the median of their half, so
    that the deliberate swap of CPU sets raises no alarm.
    """
    fewest = _FEWEST_FOR_CHANGE
    long = {
        arm: [run for run in _runs_with_windows(evidence, arm, fewest) if len(_levelled(run)) >= fewest]
        for arm in evidence.arms
    }
    p_least = 0.01 / max(1, sum(map(len, long.values())))
    for arm, runs in long.items():
        changed = [run for run in runs if _changed(_levelled(run), p_least)]
        if changed:
            yield Alarm(
                "change-point",
                arm,
                f"throughput changed permanently within the measure phase, by more than {share(STEP)}",
                ids(changed),
                "check these runs' raw files and the host for what started or stopped then, and run them again",
            )


def pettitt(values: Sequence[float]) -> tuple[int, float]:
    """Most likely change point (number of values before it), and its approximate p value."""
    x = np.asarray(values, dtype=float)
    n = len(x)
    signs = np.sign(x[:, None] - x[None, :])
    u = np.array([signs[:t, t:].sum() for t in range(1, n)])
    at = int(np.argmax(np.abs(u)))
    k = float(abs(u[at]))
    return at + 1, min(1.0, 2 * math.exp(-6 * k * k / (n**3 + n**2)))


def _changed(values: Sequence[float], p_least: float) -> bool:
    at, p = pettitt(values)
    before, after = float(np.median(values[:at])), float(np.median(values[at:]))
    return p < p_least and abs(math.log(float(after / before))) > STEP


def _beginning(mean: Sequence[float]) -> int:
    if len(mean) < _FEWEST_FOR_MSER:
        return math.ceil(len(mean) / 4)
    cut = mser5(mean)
    if cut is None:
        return 0
    return cut.drop if cut.settled else len(mean) // 2


def _windows(run: RunRecord) -> list[float]:
    """Throughput of each window; zero counts as a thousandth of the mean, for the logarithm.

    For a duet, only the windows that count: in others, only one arm runs, or CPUs are swapped.
    """
    by_half = windows_kept(run)
    return _rates(_all(run) if by_half is None else [*by_half[0], *by_half[1]])


def _runs_with_windows(evidence: Evidence, arm: str, windows: int) -> list[RunRecord]:
    """Good runs of an arm with that many recorded windows; quick, as most of 100,000 runs may have none."""
    columns, rows = evidence.columns, evidence.rows(arm)
    return [columns.records[row] for row in rows[columns.of(_recorded)[rows] >= windows]]


def _all(run: RunRecord) -> Sequence[Window]:
    return () if run.measurement is None else run.measurement.windows


def _recorded(run: RunRecord) -> float:
    return float(len(_all(run)))


def _levelled(run: RunRecord) -> list[float]:
    by_half = windows_kept(run)
    if by_half is None:
        return _windows(run)
    return [rate / np.median(rates) for rates in map(_rates, by_half) for rate in rates]


def _rates(windows: Sequence[Window]) -> list[float]:
    """Throughput of windows; windows without it are left out."""
    rates = [rate for window in windows if (rate := window.throughput_per_s) is not None]
    least = sum(rates) / len(rates) / 1000 if rates else 0.0
    return [max(least, rate) for rate in rates] if least > 0 else []
