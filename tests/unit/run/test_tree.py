"""What a record holds is plain JSON, whatever it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tare.record.run_record import to_tree


class Word(StrEnum):
    ONE = "one"


class Plain(Enum):
    ONE = 1


@dataclass(frozen=True)
class Leaf:
    value: Any = None


@dataclass(frozen=True)
class Whole:
    leaves: tuple[Leaf, ...] = ()
    named: Mapping[str, Leaf] = field(default_factory=dict)


def test_dataclasses_mappings_and_tuples_become_objects_and_lists() -> None:
    whole = Whole((Leaf(1), Leaf((2.5, "x", True, None))), MappingProxyType({"a": Leaf(Word.ONE)}))
    assert to_tree(whole) == {
        "leaves": [{"value": 1}, {"value": [2.5, "x", True, None]}],
        "named": {"a": {"value": "one"}},
    }


@pytest.mark.parametrize("value", [Path("/x"), {1}, b"x", Plain.ONE, Leaf, object()])
def test_what_json_has_no_word_for_is_refused_by_name(value: Any) -> None:
    for each in (value, Leaf(value), Leaf([value])):
        with pytest.raises(TypeError, match=f"a record cannot contain {type(value).__name__}"):
            to_tree(each)


@pytest.mark.parametrize("value", [[Leaf(1)], "text", 1, None, [("a", 1)]])
def test_only_a_dataclass_or_a_mapping_is_a_tree(value: Any) -> None:
    with pytest.raises(TypeError, match="a record cannot contain"):
        to_tree(value)


def test_a_figure_that_is_none_is_no_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        to_tree(Leaf(float("nan")))
