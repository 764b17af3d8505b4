"""Each field of a shipped study, replaced by what nobody means, is refused with its place or makes a whole plan."""

from __future__ import annotations

import copy
import json
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tare.cli.study.plan import as_json
from tare.errors import StudyError
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.study.catalogue import studies
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.workloads.registry import WORKLOADS

WRONG: tuple[Any, ...] = (
    None, -1, 0, 10**30, 1e308, float("nan"), float("inf"), True, "", "<script>alert(1)</script>", [], {},
    "x" * 3000, "a\nb", "a\u202eb", "../../etc", [1, 2], {"a": 1},
)  # fmt: skip
CASES, SEED = 40, 20261124
SLOWEST_S = 2.0
PROSE = re.compile(r"question|(scales\..+\.)?deviations\.\d+|source\.(title|authors)|published\..+|quantities\..+")
"""Words for people, and figures of a publication: whatever they say, it is shown and never acted on."""
FREE: Mapping[str, tuple[Any, ...]] = {
    r"(scales\.[^.]+|published|published_by|scales|source|deviations|quantities|exclude|margins)": (
        None, [], {},
    ),
    r"disk_bound|arms": (None,),
    r"(sut|client|workload|monitors|protocol|factors|scales)\..+|protocol|monitors|conditions|strata|stages": (
        None, 0, -1, True, [], {},
    ),
    r".*\.(settings|properties|options)\.[^.]+": ("",),
    r".*levels\.[^.]+": ("",),
}  # fmt: skip
"""Keys → values that somebody may mean: a default, nothing, the smallest number, a switch."""


def fields(tree: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*way, key)
        yield from fields(value, (*way, key))


def replaced(tree: Any, way: tuple[str | int, ...], value: Any) -> Any:
    changed = copy.deepcopy(tree)
    holder = changed
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = value
    return changed


def cases() -> list[tuple[Path, tuple[str | int, ...], Any]]:
    return [(path, way, wrong) for path, tree in _trees().items() for way in fields(tree) for wrong in WRONG]


@cache
def _trees() -> Mapping[Path, Any]:
    return {path: YAML(typ="safe", pure=True).load(path.read_text()) for path in studies().values()}


def may_be_meant(way: tuple[str | int, ...], wrong: Any) -> bool:
    key = ".".join(map(str, way))
    if isinstance(wrong, str) and wrong.strip() and "\u202e" not in wrong and PROSE.fullmatch(key):
        return True
    if isinstance(wrong, float | int) and not isinstance(wrong, bool) and PROSE.fullmatch(key):
        return abs(wrong) <= 1
    return any(re.fullmatch(free, key) and any(wrong == each for each in some) for free, some in FREE.items())


def judged(path: Path, way: tuple[str | int, ...], wrong: Any) -> str | None:
    """What is wrong with how tare takes one wrong value; `None` where it is refused in words, or may be meant."""
    text = json.dumps(replaced(_trees()[path], way, wrong)).replace("NaN", ".nan").replace("Infinity", ".inf")
    began = time.process_time()
    try:
        plan = expand(loads(text, installed(), file=str(path)))
    except StudyError as error:
        if not error.what.startswith(f"{path}:1:"):
            return f"no place: {error.what}"
    else:
        result = as_json(plan, estimate(plan, data_sets(WORKLOADS)))
        json.dumps(result, allow_nan=False)
        if Plan.model_validate_json(plan.model_dump_json()) != plan:
            return "the plan is another after it was kept"
        if not may_be_meant(way, wrong):
            return "accepted in silence"
    taken = time.process_time() - began
    return None if taken < SLOWEST_S else f"{taken:.1f} s"


def _judged_twice(path: Path, way: tuple[str | int, ...], wrong: Any) -> str | None:
    """A slow one again: the first may have had to collect what earlier tests left."""
    why = judged(path, way, wrong)
    return judged(path, way, wrong) if why is not None and why.endswith(" s") else why


def of(some: Sequence[tuple[Path, tuple[str | int, ...], Any]]) -> list[str]:
    """The cases that are wrong, each with what is wrong with it."""
    results = [
        (f"{path.parent.name}/{path.name}", way, wrong, _judged_twice(path, way, wrong))
        for path, way, wrong in some
    ]
    return [f"{name} {'.'.join(map(str, way))}: {wrong!r:.40}: {why}" for name, way, wrong, why in results if why]


def test_a_wrong_field_is_refused_with_its_place_or_makes_a_whole_plan() -> None:
    assert not of(random.Random(SEED).sample(cases(), CASES))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_field_of_every_shipped_study_is_refused_where_it_cannot_be_meant() -> None:
    every = cases()
    assert len(every) > 20_000
    assert not of(every)
