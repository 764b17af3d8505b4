"""The runs of one arm, attempt by attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tare.live.view import View
from tare.store.outlines import Outline


@dataclass(frozen=True)
class Attempt:
    """One attempt in words and figures. `state`: `good`, `failed`, `running`, `planned` or `not needed`."""

    run_id: str
    block: int
    number: int | None
    state: str
    throughput_per_s: float | None = None
    unit: str | None = None
    latency_p95_ms: float | None = None
    seconds: float | None = None
    committed_at: float | None = None
    reason: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arm:
    """An arm and all attempts at its runs, by block."""

    name: str
    levels: tuple[tuple[str, str], ...]
    attempts: Sequence[Attempt]


def of_arm(view: View, number: int) -> Arm | None:
    """The arm with that number in the study's order; `None` if there is none."""
    if view.known is None or not 0 <= number < len(view.known.plan.study.arms):
        return None
    arm = view.known.plan.study.arms[number]
    under_way = {run.run_id: run.attempt for run in view.under_way}
    decided = view.known.decision
    last = None if decided.end is None else decided.blocks
    attempts: list[Attempt] = []
    for run in sorted((run for run in view.known.plan.runs if run.arm == arm.name), key=lambda run: run.block):
        made = [_made(outline) for outline in view.known.attempts.get(run.id, ())]
        if run.id in under_way:
            made.append(Attempt(run.id, run.block, under_way[run.id], "running"))
        spared = last is not None and run.block > last
        attempts += made or [Attempt(run.id, run.block, None, "not needed" if spared else "planned")]
    return Arm(view.names[arm.name], tuple(arm.levels.items()), attempts)


def _made(outline: Outline) -> Attempt:
    made = outline.made
    return Attempt(
        run_id=made.run_id,
        block=made.block,
        number=outline.attempt,
        state="good" if made.ok else "failed",
        throughput_per_s=made.throughput_per_s,
        unit=outline.unit,
        latency_p95_ms=outline.latency_p95_ms,
        seconds=made.seconds,
        committed_at=outline.committed_at,
        reason=outline.reason,
        notices=outline.notices,
    )
