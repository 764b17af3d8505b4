"""Arm names for two stores that show in which of them the arms were emulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analyze.comparison import Recorded
from tare.record.emulated import MARK, emulated_arms, made_unique, mark_of, marked, renamed


def with_both_marks(sides: Sequence[Recorded]) -> list[Recorded]:
    """Give A and B the same arm names: `(emulated) vm` if emulated in both, `(emulated in B) vm` if in one."""
    marks = [_marks(side) for side in sides]
    joined = {name: _one(*(each.get(name) for each in marks)) for each in marks for name in each}
    names = made_unique({name: marked(name, mark) for name, mark in joined.items()})
    return [_renamed(side, names) for side in sides]


def _marks(side: Recorded) -> Mapping[str, str | None]:
    arms = emulated_arms(side.records)
    return {arm.name: mark_of(side.plan.study, arms, arm.name) for arm in side.plan.study.arms}


def _one(a: str | None, b: str | None) -> str | None:
    if a is None or b is None:
        mark = a or b
        return None if mark is None else mark.replace(")", f" in {'A' if b is None else 'B'})")
    return a if a == b else MARK


def _renamed(side: Recorded, names: Mapping[str, str]) -> Recorded:
    study, records = renamed(side.plan.study, side.records, names)
    runs = tuple(run.model_copy(update={"arm": names[run.arm]}) for run in side.plan.runs)
    return Recorded(side.plan.model_copy(update={"study": study, "runs": runs}), records)
