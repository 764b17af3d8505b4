"""Whether two plans belong together: one continues the other, or both ask the same question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tare.errors import NotComparable
from tare.plan.expand import decisive
from tare.plan.model import Plan
from tare.protocols.registry import PROTOCOLS

BLOCKS, MINUTES = "protocol.blocks", "protocol.max_minutes"
_SHOWN = 3
_NOT_THERE = "not set"


@dataclass(frozen=True)
class Difference:
    """A dotted key that decides what runs, with its two values as text."""

    key: str
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.key} is {self.was} there and {self.now} here"


def differences(was: Plan, now: Plan) -> tuple[Difference, ...]:
    """Return every difference that decides what runs or how it is judged."""
    one, other = dict(_flat(decisive(was))), dict(_flat(decisive(now)))
    keys = [key for key in {**one, **other} if one.get(key, _NOT_THERE) != other.get(key, _NOT_THERE)]
    return tuple(Difference(key, one.get(key, _NOT_THERE), other.get(key, _NOT_THERE)) for key in keys)


def extends(was: Plan, now: Plan) -> bool:
    """Whether `now` is `was` with a raised cap: the runs of `was` come first in it, under the same names.

    A protocol that keeps the runs of an arm together cannot be extended: further runs would come in between.
    Imported runs cannot either: blocks are numbered by the files read, and plans are named by every byte of them.
    """
    if was.study.imported or now.study.imported:
        return False
    old, new = was.study.protocol, now.study.protocol
    raised = new.blocks >= old.blocks and _minutes(new) >= _minutes(old)
    only_caps = all(each.key in {BLOCKS, MINUTES} for each in differences(was, now))
    return only_caps and raised and now.runs[: len(was.runs)] == was.runs


def changes_between(was: Plan, now: Plan) -> str:
    """Describe the differences in a sentence and, if they are caps only, why that is no extension."""
    changes = differences(was, now)
    if was.study.imported and now.study.imported and all(each.key == BLOCKS for each in changes):
        return f"its runs were read from other files{_how_many(was, now)}, or by another mapping"
    if changes and all(each.key in {BLOCKS, MINUTES} for each in changes):
        caps = " and ".join(map(str, changes))
        inner = now.runs[: len(was.runs)] != was.runs and now.study.protocol.blocks >= was.study.protocol.blocks
        why = (
            "the existing runs would not be the first ones of the new plan"
            if inner
            else "caps can be raised, not lowered"
        )
        return f"{caps}; {why}"
    if arms := "; ".join(_arms_of_one(was, now)):
        return arms
    more = f", and {len(changes) - _SHOWN} more keys differ" if len(changes) > _SHOWN else ""
    return f"{', '.join(map(str, changes[:_SHOWN])) or 'its runs differ'}{more}"


def _arms_of_one(was: Plan, now: Plan) -> Iterator[str]:
    """Yield the arms that only one plan has; the differences in their keys are implied."""
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
    """Yield dotted keys with values as text; arms by their names."""
    if isinstance(tree, list) and tree and all(isinstance(each, Mapping) and "name" in each for each in tree):
        tree = {str(each["name"]): {key: value for key, value in each.items() if key != "name"} for each in tree}
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, _NOT_THERE if tree is None else str(tree)


_TIMES = "(?!measure_s$|warmup_s$|window_s$|cooldown_s$)"
_QUESTION = re.compile(
    r"name|scale|arms\..+\.(levels\..+|control|settings|settings\.((sut|client)(\.(deployment|network|cgroup|runtime))?"
    rf"|sut\.database|sut\.nodes|sut\.storage(\..+)?|workload_name|workload\.{_TIMES}.+))"
)
"""Keys that make it another study. Images, settings, limits, CPUs, monitors, durations, repetitions, margins and
the seed may differ: users want to compare them, so they are named."""
_EMPTY = '""'


@dataclass(frozen=True)
class Shared:
    """What two plans of one study have in common. `arms`: the comparable ones, without baselines and controls."""

    arms: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    differences: tuple[Difference, ...]
    """Differences in the common arms and in the protocol."""


def shared(a: Plan, b: Plan) -> Shared:
    """Return what can be compared. Raises `NotComparable` with what makes them different studies."""
    names = [_names(plan) for plan in (a, b)]
    both = [name for name in names[0] if name in names[1]]
    changes = differences(_restricted(a, both), _restricted(b, both))
    # Another study has other arms and baselines, and another baseline makes another control arm.
    _refuse([each for each in changes if each.key == "name"])
    _refuse(_of_baselines(a, b, both))
    _refuse([each for each in changes if _QUESTION.fullmatch(each.key)])
    if PROTOCOLS[a.study.protocol.name].at_once != PROTOCOLS[b.study.protocol.name].at_once:
        _refuse([Difference("protocol.name", a.study.protocol.name, b.study.protocol.name)])
    arms = tuple(name for name in both if not a.arm(name).control and a.study.baseline_of(name) != name)
    if not arms:
        raise NotComparable("the two studies have no arm in common", hint="compare stores of the same study file")
    return Shared(
        arms=arms,
        only_a=tuple(name for name in names[0] if name not in both),
        only_b=tuple(name for name in names[1] if name not in both),
        differences=changes,
    )


def _names(plan: Plan) -> list[str]:
    return [arm.name for arm in plan.study.arms]


def _restricted(plan: Plan, names: list[str]) -> Plan:
    """Return the plan with these arms only, to compare its settings."""
    arms = tuple(arm for arm in plan.study.arms if arm.name in names)
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": arms})})


def _of_baselines(a: Plan, b: Plan, names: list[str]) -> list[Difference]:
    pairs = dict.fromkeys((a.study.baseline_of(name), b.study.baseline_of(name)) for name in names)
    return [Difference("the baseline", was, now) for was, now in pairs if was != now]


def _refuse(differing: list[Difference]) -> None:
    if not differing:
        return
    changes = "; ".join(
        f"{each.key} is {each.was[:80] or _EMPTY} in A and {each.now[:80] or _EMPTY} in B"
        for each in differing[:_SHOWN]
    )
    more = f"; {len(differing) - _SHOWN} more keys differ" if len(differing) > _SHOWN else ""
    raise NotComparable(
        f"A and B are not the same study: {changes}{more}", hint="compare two stores of the same study"
    )
