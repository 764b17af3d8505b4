"""What is known of a machine: the figures of its calibration as one value, in which it is also kept and quoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tare.calibrate.machine import Identity
from tare.calibrate.outcome import Observed
from tare.calibrate.pooled import (
    MINUTES,
    RUNS_A_BLOCK,
    Injected,
    Share,
    Smallest,
    block_spread,
    false_positives,
    injected,
    run_seconds,
    smallest,
)
from tare.study.values import Strict


class Effort(Strict):
    """What the calibration has cost. `finished_at`: of the last study, seconds since the epoch."""

    studies: int
    runs: int
    failed: int
    machine_s: float
    finished_at: float | None


class Summary(Strict):
    """A calibration. `by_deployment`: false positives of bare servers and of those in containers apart.

    `spread`: standard deviation of the log ratio of two instances of the same from block to block; `block_s`:
    seconds of a block of three runs.
    """

    format: Literal[1] = 1
    tare: str
    identity: Identity
    effort: Effort
    false_positives: Share
    by_deployment: Mapping[str, Share]
    injections: tuple[Injected, ...]
    spread: float | None
    block_s: float | None
    smallest: tuple[Smallest, ...]
    observed: tuple[Observed, ...]


def summarise(identity: Identity, seen: Sequence[Observed], effort: Effort, version: str) -> Summary:
    """All figures from what the studies have shown."""
    names = dict.fromkeys(each.deployment for each in seen if each.injection is None)
    spread, run_s = block_spread(seen), run_seconds(seen)
    block_s = None if run_s is None else RUNS_A_BLOCK * run_s
    known = spread is not None and block_s is not None
    return Summary(
        tare=version,
        identity=identity,
        effort=effort,
        false_positives=false_positives(seen),
        by_deployment={name: false_positives([each for each in seen if each.deployment == name]) for name in names},
        injections=tuple(
            injected(seen, name) for name in dict.fromkeys(each.injection for each in seen) if name is not None
        ),
        spread=spread,
        block_s=block_s,
        smallest=tuple(smallest(spread or 0.0, block_s or 1.0, minutes) for minutes in MINUTES) if known else (),
        observed=tuple(seen),
    )
