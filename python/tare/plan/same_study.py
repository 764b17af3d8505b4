"""Whether two plans ask the same question, so that their answers can be laid side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tare.errors import NotComparable
from tare.plan.extension import Difference, differences
from tare.plan.model import Plan
from tare.protocols import PROTOCOLS

_TIMES = "(?!measure_s$|warmup_s$|window_s$|cooldown_s$)"
_QUESTION = re.compile(
    r"name|scale|arms\..+\.(levels\..+|control|settings|settings\.((sut|client)(\.(deployment|network|cgroup|runtime))?"
    rf"|sut\.database|sut\.nodes|sut\.storage(\..+)?|workload_name|workload\.{_TIMES}.+))"
)
"""Keys that make another study of it. Images, settings, limits, CPUs, monitors, how long and how often is measured,
margins and the seed may differ: they are what one wants to compare, and are named."""
_SHOWN = 3
_EMPTY = '""'


@dataclass(frozen=True)
class Shared:
    """What two plans of one study have in common. `arms`: compared ones, without baselines and controls."""

    arms: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    differences: tuple[Difference, ...]
    """Of the arms that both have, and of the protocol."""


def shared(a: Plan, b: Plan) -> Shared:
    """What can be compared. Raises `NotComparable` with what makes them different studies."""
    names = [_names(plan) for plan in (a, b)]
    both = [name for name in names[0] if name in names[1]]
    found = differences(_restricted(a, both), _restricted(b, both))
    # Another study has other arms and baselines, and another baseline makes another control arm.
    _refuse([each for each in found if each.key == "name"])
    _refuse(_of_baselines(a, b, both))
    _refuse([each for each in found if _QUESTION.fullmatch(each.key)])
    if PROTOCOLS[a.study.protocol.name].at_once != PROTOCOLS[b.study.protocol.name].at_once:
        _refuse([Difference("protocol.name", a.study.protocol.name, b.study.protocol.name)])
    arms = tuple(name for name in both if not a.arm(name).control and a.study.baseline_of(name) != name)
    if not arms:
        raise NotComparable("the two studies have no arm in common", hint="compare stores of the same study file")
    return Shared(
        arms=arms,
        only_a=tuple(name for name in names[0] if name not in both),
        only_b=tuple(name for name in names[1] if name not in both),
        differences=found,
    )


def _names(plan: Plan) -> list[str]:
    return [arm.name for arm in plan.study.arms]


def _restricted(plan: Plan, names: list[str]) -> Plan:
    """The plan with these arms only, for what it says of them."""
    arms = tuple(arm for arm in plan.study.arms if arm.name in names)
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": arms})})


def _of_baselines(a: Plan, b: Plan, names: list[str]) -> list[Difference]:
    pairs = dict.fromkeys((a.study.baseline_of(name), b.study.baseline_of(name)) for name in names)
    return [Difference("the baseline", was, now) for was, now in pairs if was != now]


def _refuse(found: list[Difference]) -> None:
    if not found:
        return
    told = "; ".join(
        f"{each.key} is {each.was[:80] or _EMPTY} in A and {each.now[:80] or _EMPTY} in B"
        for each in found[:_SHOWN]
    )
    more = f"; {len(found) - _SHOWN} more keys differ" if len(found) > _SHOWN else ""
    raise NotComparable(
        f"A and B are not the same study: {told}{more}", hint="a comparison needs the same question in both"
    )
