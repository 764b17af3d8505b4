"""Whether a plan goes on with another one: the same study with a higher cap, and else in what they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tare.plan.expand import decisive
from tare.plan.model import Plan

BLOCKS, MINUTES = "protocol.blocks", "protocol.max_minutes"
_SHOWN = 3
_NOT_THERE = "not set"


@dataclass(frozen=True)
class Difference:
    """A dotted key that decides what is run, and its two values as text."""

    key: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.key} is {self.was} there and {self.now} here"


def differences(was: Plan, now: Plan) -> tuple[Difference, ...]:
    """Everything that decides what is run or how it is judged, and is not the same in both."""
    one, other = dict(_flat(decisive(was))), dict(_flat(decisive(now)))
    keys = [key for key in {**one, **other} if one.get(key, _NOT_THERE) != other.get(key, _NOT_THERE)]
    return tuple(Difference(key, one.get(key, _NOT_THERE), other.get(key, _NOT_THERE)) for key in keys)


def extends(was: Plan, now: Plan) -> bool:
    """Whether `now` is `was` with a cap raised: the runs of `was` come first in it, under the same names.

    A protocol that keeps the runs of an arm together has no such plan: more of them would come in between. Nor have
    runs that somebody else has made: blocks are numbered by what was read, and plans are named by its every byte.
    """
    if was.study.imported or now.study.imported:
        return False
    old, new = was.study.protocol, now.study.protocol
    raised = new.blocks >= old.blocks and _minutes(new) >= _minutes(old)
    only_caps = all(each.key in {BLOCKS, MINUTES} for each in differences(was, now))
    return only_caps and raised and now.runs[: len(was.runs)] == was.runs


def told(was: Plan, now: Plan) -> str:
    """The differences in a sentence, and where they are caps alone why that is no extension."""
    found = differences(was, now)
    if was.study.imported and now.study.imported and all(each.key == BLOCKS for each in found):
        return f"its runs were read from other files{_how_many(was, now)}, or by another mapping"
    if found and all(each.key in {BLOCKS, MINUTES} for each in found):
        caps = " and ".join(map(str, found))
        inner = now.runs[: len(was.runs)] != was.runs and now.study.protocol.blocks >= was.study.protocol.blocks
        why = "the runs that are there would not be its first ones" if inner else "a cap can be raised, not lowered"
        return f"{caps}; {why}"
    if arms := "; ".join(_arms_of_one(was, now)):
        return arms
    more = f", and {len(found) - _SHOWN} more keys differ" if len(found) > _SHOWN else ""
    return f"{', '.join(map(str, found[:_SHOWN])) or 'its runs are others'}{more}"


def _arms_of_one(was: Plan, now: Plan) -> Iterator[str]:
    """Arms that only one of them has: each of their keys differs, and says no more."""
    there, here = ([arm.name for arm in plan.study.arms] for plan in (was, now))
    for names, others, where in ((there, here, "there, not here"), (here, there, "here, not there")):
        if only := [name for name in names if name not in others]:
            more = f" and {len(only) - _SHOWN} more" if len(only) > _SHOWN else ""
            yield f"{'arm' if len(only) == 1 else 'arms'} {', '.join(only[:_SHOWN])}{more} {where}"


def _how_many(was: Plan, now: Plan) -> str:
    there, here = (plan.study.imported.files if plan.study.imported else 0 for plan in (was, now))
    return "" if there == here else f" ({there} there, {here} here)"


def _minutes(protocol: Any) -> float:
    minutes = getattr(protocol, "max_minutes", None)
    return float("inf") if minutes is None else float(minutes)


def _flat(tree: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted key → value as text; arms by their names."""
    if isinstance(tree, list) and tree and all(isinstance(each, Mapping) and "name" in each for each in tree):
        tree = {str(each["name"]): {key: value for key, value in each.items() if key != "name"} for each in tree}
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, _NOT_THERE if tree is None else str(tree)
