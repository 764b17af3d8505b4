"""Rules on arms that take turns: whether one changes the next one's rate, and whether servers rest in between."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tare.analyze.columns import known
from tare.analyze.statistics.turns import Generation, generations_of
from tare.analyze.validity.evidence import Alarm, Evidence, share, shift
from tare.protocols.turn_pilot import CARRIED, LATE

_CHANCE = 0.01
AWAKE = 0.02
"""CPUs that a server may use on average while other arms are driven."""
_QUIET = "let it finish its work first: a longer protocol.settle_ms or turn_ms, or `interleave`"
_LONGER = "increase protocol.settle_ms, then protocol.turn_ms; if that does not help, use `interleave`"


def carry_over(evidence: Evidence) -> Iterator[Alarm]:
    """An arm's turn is not over when the next one's counts, or changes its rate.

    Alarm: an arm's rate rises or falls from the first to the second half of its turns by over `CARRIED`, or is that
    much higher or lower after one arm than after the others, with a t interval over generations that excludes zero:
    99 % over all arms, or over all pairs of arms (Bonferroni). Also if over `LATE` of an arm's turns begin to count
    before the last operation of the arm before has ended. Needs 4 generations.
    """
    if evidence.study.protocol.name != "rotate":
        return
    records = [evidence.columns.records[row] for row in evidence.all_rows]
    generations = generations_of(records)
    for arm in evidence.arms:
        having = [each for each in generations if arm in each.arms]
        what = [
            *_late(having, arm),
            *_risen(having, arm, len(evidence.arms)),
            *_followed(having, arm, evidence.arms),
        ]
        if what:
            yield Alarm("carry-over", arm, "; ".join(what), evidence.ids(evidence.rows(arm)), _LONGER)


def awake(evidence: Evidence) -> Iterator[Alarm]:
    """A server works while other arms are driven: mean use of more than `AWAKE` CPUs over an arm's runs."""
    used = evidence.columns.number("usage", "idle_cpus")
    for arm in evidence.arms:
        rows = evidence.rows(arm)
        values = used[rows][known(used[rows])]
        if len(values) and float(values.mean()) > AWAKE:
            what = f"its server used {float(values.mean()):.2f} CPUs on average while other arms were driven"
            yield Alarm("awake", arm, what, evidence.ids(rows), _QUIET)


def _late(generations: Sequence[Generation], arm: str) -> Iterator[str]:
    late = [float(each.begun_late[each.row(arm)].mean()) for each in generations]
    if late and float(np.mean(late)) > LATE:
        yield f"{share(float(np.mean(late)))} of its turns began before the last reply to the arm before"


def _risen(generations: Sequence[Generation], arm: str, arms: int) -> Iterator[str]:
    rise = shift(_known(each.rise(arm) for each in generations), 1 - _CHANCE / arms)
    if rise is not None and rise.real and abs(math.expm1(rise.mean)) > CARRIED:
        way = "faster" if rise.mean > 0 else "slower"
        yield f"the second half of its turns was {share(abs(math.expm1(rise.mean)))} {way} than the first"


def _followed(generations: Sequence[Generation], arm: str, arms: Sequence[str]) -> Iterator[str]:
    confidence = 1 - _CHANCE / max(1, len(arms) * (len(arms) - 1))
    for before in arms:
        moved = shift(_known(each.after(arm, before) for each in generations if before in each.arms), confidence)
        if moved is not None and moved.real and abs(moved.mean) > CARRIED:
            way = "faster" if moved.mean > 0 else "slower"
            who = "itself" if before == arm else before
            yield f"its turns after {who} were {share(abs(moved.mean))} {way} than after others"


def _known(values: Iterator[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]
