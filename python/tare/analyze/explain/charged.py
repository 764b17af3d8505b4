"""Log output, charged to sampled runs: in a module of its own, as reading samples takes Polars. Pure."""

from __future__ import annotations

from dataclasses import replace

from tare.analyze.explain.run_times import RunTimes
from tare.analyze.explain.sampled import CpuSide


def charged(mine: RunTimes, theirs: RunTimes) -> tuple[RunTimes, RunTimes]:
    """Charge both runs of a block with log output: their shims, and what the daemons used more beside one of them.

    Unchanged where nothing was sampled. Daemons' work in the same time is compared: `machine_us` is proportional to
    the time of an operation.
    """
    if not mine.machine_us or not theirs.machine_us:
        return mine, theirs
    if mine.daemons_us is None or theirs.daemons_us is None:
        return mine, theirs
    excess_us = mine.daemons_us - theirs.daemons_us * mine.machine_us / theirs.machine_us
    return _charge(mine, excess_us), _charge(theirs, -excess_us * theirs.machine_us / mine.machine_us)


def _charge(run: RunTimes, excess_us: float) -> RunTimes:
    if run.cpu_us is None:
        return run
    share = max(0.0, excess_us) / run.daemons_us if run.daemons_us else 0.0
    cpu_us: dict[tuple[CpuSide, str], float] = {}
    for (side, component), used in run.cpu_us.items():
        moved = used if side is CpuSide.SHIM else share * used if side is CpuSide.ENGINE else 0.0
        for key, part in (((CpuSide.LOG, component), moved), ((side, component), used - moved)):
            if part:
                cpu_us[key] = cpu_us.get(key, 0.0) + part
    daemons_us = None if run.daemons_us is None else run.daemons_us * (1 - share)
    return replace(run, cpu_us=cpu_us, daemons_us=daemons_us)
