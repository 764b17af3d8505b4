"""The smallest study that would tell what no claim does: the baseline and the arms in question, as a study file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML

from tare.databases.registry import DATABASES
from tare.errors import StudyError
from tare.knowledge.advice import Advice, plausible
from tare.plan.datasets import data_sets
from tare.plan.estimate import EXPECTED_SPREAD, estimate, slow_starts
from tare.plan.model import Plan
from tare.protocols.stopping import Rule, blocks_needed
from tare.study.model import Arm, Study
from tare.study.reading.document import KeyPath
from tare.study.reading.load import loads
from tare.study.reading.patches import split
from tare.study.registry import Registry
from tare.workloads.registry import WORKLOADS

FINEST, COARSEST = 0.01, 0.05
_MOST_BLOCKS = 1000


_HEAD = """\
# The smallest study that answers what no claim of the knowledge base answers: `tare plan FILE`, `tare run FILE`.
"""


@dataclass(frozen=True)
class Rounds:
    """Blocks for intervals of ± `target`, if `spread` is that from block to block. `seconds`: machine time.

    `enough`: whether these blocks are; where they are not, so many are the most that a study may have.
    """

    target: float
    spread: float
    spread_from: str
    blocks: int
    seconds: float | None
    enough: bool = True


def target_of(advice: Advice) -> float:
    """Half of the smallest overhead that is expected and not next to none, between ± 1 % and ± 5 %; else ± 2 %."""
    middles = [abs(sum(ends) / 2) for ends in plausible(advice.forecasts)]
    expected = [middle for middle in middles if middle > FINEST]
    return 0.02 if not expected else min(COARSEST, max(FINEST, round(min(expected) / 2, 3)))


def rounds_of(plan: Plan, target: float, spread: float | None = None) -> Rounds:
    """For the arms of `plan`. `spread`: as calibrated, `None`: what is expected of a machine that is not."""
    known = EXPECTED_SPREAD if spread is None else spread
    rule = replace(Rule(), target=target, blocks=_MOST_BLOCKS, seconds=None)
    blocks = blocks_needed(rule, 0.0, known) or _MOST_BLOCKS  # `None` only without a target
    planned = estimate(plan, data_sets(WORKLOADS), slow_starts(DATABASES, WORKLOADS))
    source = (
        "tare's default for a machine that is not calibrated" if spread is None else "this machine's calibration"
    )
    return Rounds(target, known, source, blocks, planned.seconds_of(blocks), enough=blocks < _MOST_BLOCKS)


def smallest_study(study: Study, arms: Sequence[str], registry: Registry, target: float, blocks: int) -> str:
    """The text of a study of `arms` and their baselines, with intervals of ± `target` in mind.

    It has been read as a study when it is returned; raises `StudyError` where that cannot be.
    """
    wanted = dict.fromkeys(name for arm in arms for name in (study.baseline_of(arm), arm))
    chosen = [arm for arm in study.arms if arm.name in wanted and not arm.control]
    if len(chosen) < 2:
        raise StudyError("a study needs at least two arms", hint="name an arm to compare with the baseline")
    baselines = {study.baseline_of(arm.name) for arm in chosen}
    if len(baselines) > 1:  # the first one with its arms is the smallest study
        compared = {arm.name: study.baseline_of(arm.name) for arm in chosen}
        pairs = [(arm, base) for arm, base in compared.items() if arm != base]
        first = [arm for arm, base in pairs if base == pairs[0][1]]
        return smallest_study(study, first, registry, target, blocks)
    tree = _tree(study, chosen, baselines.pop(), target, blocks)
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(tree, stream)
    text = _HEAD + stream.getvalue()
    loads(text, registry, file="the smallest study")
    return text


def _tree(study: Study, arms: Sequence[Arm], baseline: str, target: float, blocks: int) -> dict[str, Any]:
    flat = {arm.name: _flat(_settings(arm)) for arm in arms}
    keys = dict.fromkeys(key for each in flat.values() for key in each)
    same = [key for key in keys if len({repr(each.get(key)) for each in flat.values()}) == 1]
    differing = [key for key in keys if key not in same]
    tree: dict[str, Any] = {
        "format": 1,
        "name": f"{study.name[:50]}-smallest",
        "question": f"What do these arms cost, for which no claim exists? From: {study.question}",
    }
    first = next(iter(flat.values()))
    for key in same:
        _put(tree, split(key), first[key])
    tree["protocol"] = {"name": "interleave", "target": target, "blocks": max(8, min(1000, 2 * blocks)), "seed": 1}
    levels = {name: {key: each[key] for key in differing if key in each} for name, each in flat.items()}
    tree["factors"] = {"arm": {"sets": differing, "levels": levels}}
    tree["baseline"] = baseline
    return tree


def _settings(arm: Arm) -> dict[str, Any]:
    settings: dict[str, Any] = arm.settings.model_dump(mode="json", exclude_none=True)
    workload = {"name": settings["workload_name"], **settings["workload"]}
    sides: dict[str, Any] = {side: settings[side] for side in ("sut", "client") if side in settings}
    return {**sides, "workload": workload, "monitors": settings["monitors"]}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted key → value; what is empty is left out."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _put(tree: dict[str, Any], path: KeyPath, value: Any) -> None:
    *branches, leaf = map(str, path)
    for key in branches:
        tree = tree.setdefault(key, {})
    tree[leaf] = value
