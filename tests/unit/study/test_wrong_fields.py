"""Each field of a shipped study, replaced by what nobody means, is refused with its place or makes a whole plan."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML

from tare.cli.plan import as_json
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


def test_a_wrong_field_is_refused_with_its_place_or_makes_a_whole_plan() -> None:
    registry, sets = installed(), data_sets(WORKLOADS)
    trees = {path: YAML(typ="safe", pure=True).load(path.read_text()) for path in studies().values()}
    cases = [(path, way, wrong) for path, tree in trees.items() for way in fields(tree) for wrong in WRONG]
    for path, way, wrong in random.Random(SEED).sample(cases, CASES):
        text = json.dumps(replaced(trees[path], way, wrong)).replace("NaN", ".nan").replace("Infinity", ".inf")
        began = time.process_time()
        try:
            plan = expand(loads(text, registry, file=str(path)))
        except StudyError as error:
            if not error.what.startswith(f"{path}:1:"):
                raise AssertionError((way, wrong)) from error
        else:
            told = as_json(plan, estimate(plan, sets))
            json.dumps(told, allow_nan=False)
            assert Plan.model_validate_json(plan.model_dump_json()) == plan, (way, wrong)
        assert time.process_time() - began < SLOWEST_S, (way, wrong)
