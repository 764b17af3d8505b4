"""Data that the browser draws, as small trees: the plan's cells, intervals by block, values over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tare.live.known import Known
from tare.live.view import Last, View
from tare.live.windows import P95, Point, thinned
from tare.protocols.registry import rule_of
from tare.report.plain import distinct, plain

ARMS_DRAWN = 6
"""Number of arms drawn: those with the widest intervals. A table lists all."""
_LONGEST = 48
GOOD, AGAIN, FAILED, RUNNING, PLANNED, SPARED = "g", "a", "f", "r", "p", "s"
"""Good at once, good after failed attempts, failed so far, running, planned, not needed any more."""


def grid(view: View) -> Any:
    """One row per arm and one letter per run, by block: 720 runs are 720 letters and their names."""
    if view.known is None:
        return {"arms": [], "blocks": 0}
    known = view.known
    names = tuple(arm.name for arm in known.plan.study.arms)
    shown = view.names
    labels = distinct(tuple(shown[name] for name in names), _LONGEST)
    rows: dict[str, dict[int, str]] = {name: {} for name in names}
    under_way = {run.run_id for run in view.under_way}
    last = None if known.decision.end is None else known.decision.blocks
    for run in known.plan.runs:
        rows[run.arm][run.block] = _state(known, run.id, run.block, under_way, last)
    blocks = max((run.block for run in known.plan.runs), default=0)
    return {
        "blocks": blocks,
        "arms": [
            {
                "name": labels[shown[name]],
                "cells": "".join(rows[name].get(block, " ") for block in range(1, blocks + 1)),
            }
            for name in names
        ],
    }


def _state(known: Known, run: str, block: int, under_way: set[str], last: int | None) -> str:
    if run in under_way:
        return RUNNING
    if run in known.done.good:
        return GOOD if known.done.attempts[run] == 1 else AGAIN
    if known.done.attempts[run]:
        return FAILED
    return SPARED if last is not None and block > last else PLANNED


def trail(view: View) -> Any:
    """Effect and interval after each number of blocks, in percent."""
    if view.known is None or not view.known.trail:
        return {"points": [], "target": None}
    steps = view.known.trail
    last = steps[-1].arms
    least = sorted(last, key=lambda name: -(last[name].half_width or float("inf")))[:ARMS_DRAWN]
    shown = [arm.name for arm in view.known.plan.study.arms if arm.name in least]
    names = view.names
    labels = distinct(tuple(names[name] for name in shown), _LONGEST)
    rule = rule_of(view.known.plan.study)
    target = rule.target if rule.margin is None else None
    points = [
        {
            "arm": labels[names[name]],
            "blocks": step.blocks,
            "point": _percent(step.arms[name].point),
            "low": _percent(step.arms[name].low),
            "high": _percent(step.arms[name].high),
            "target_low": None if target is None else _percent(_minus(last[name].point, target)),
            "target_high": None if target is None else _percent(_minus(last[name].point, -target)),
        }
        for step in steps
        for name in shown
        if name in step.arms and step.arms[name].point is not None
    ]
    return {"points": points, "target": None if target is None else _percent(target), "arms": len(last)}


def _minus(point: float | None, margin: float) -> float | None:
    return None if point is None else point - margin


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else round(100 * fraction, 3)


def series(view: View) -> Any:
    """Throughput and latency of each running run that has them, or else of the last finished run.

    `awaited`: whether a running run may still get values.
    """
    shown = [one for one in view.seen if one.windows]
    if shown:
        runs = [
            {
                "run": f"{_run(view, one.run_id, one.arm)}, {one.phase}",
                "unit": one.unit,
                "latency": one.latency,
                "points": _points(one.windows),
            }
            for one in shown
        ]
        return {"live": True, "awaited": True, "runs": runs}
    awaited = bool(view.under_way)
    if view.last is None or not view.last.windows:
        return {"live": False, "awaited": awaited, "runs": []}
    last = {
        "run": _run(view, view.last.run_id, view.last.arm),
        "unit": view.last.unit,
        "latency": P95,
        "points": _points(view.last.windows, _later_s(view, view.last)),
    }
    return {"live": False, "awaited": awaited, "runs": [last]}


def _later_s(view: View, last: Last) -> float:
    """Seconds from second 0 of the trace of the last run to its measurement, if the trace is drawn too."""
    zero_s = next((one.zero_s for one in view.traced if one.run_id == last.run_id), None)
    return 0.0 if zero_s is None or last.measured_s is None else last.measured_s - zero_s


def _run(view: View, run_id: str, arm: str) -> str:
    return plain(view.run_name(run_id, arm), _LONGEST)


def _points(windows: Sequence[Point], later_s: float = 0.0) -> list[list[float | None]]:
    return [
        [round(later_s + one.second, 1), _short(one.throughput_per_s), _short(one.latency_ms)]
        for one in thinned(windows)
    ]


def trace(view: View) -> Any:
    """Resource use of SUT, client, engine and host, now or in the last run: one line per resource and user."""
    lines: dict[tuple[str, str, str], list[list[float | None]]] = {}
    for one in view.traced:
        for point in one.trace:
            key = (_run(view, one.run_id, one.arm), point.panel, point.who)
            lines.setdefault(key, []).append([round(point.second, 1), _short(point.value)])
    return [{"run": run, "panel": panel, "who": who, "points": line} for (run, panel, who), line in lines.items()]


def _short(value: float | None) -> float | None:
    """Round to four significant digits."""
    return None if value is None else float(f"{value:.4g}")
