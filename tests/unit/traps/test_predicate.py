"""Predicates: three answers, sizes, and facts compared with facts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from tare.traps.predicate import Answer, Predicate

ASK: TypeAdapter[Any] = TypeAdapter(Predicate)
YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN


@pytest.mark.parametrize(
    ("predicate", "facts", "expected"),
    [
        ({"fact": "a", "equals": True}, {"a": True}, YES),
        ({"fact": "a", "equals": True}, {"a": 1}, NO),
        ({"fact": "a", "equals": 0}, {"a": 0}, YES),
        ({"fact": "a", "equals": 0}, {"a": None}, UNKNOWN),
        ({"fact": "a", "one_of": ["x", "y"]}, {"a": "y"}, YES),
        ({"fact": "a", "none_of": [1]}, {"a": 0}, YES),
        ({"fact": "a", "contains": "x"}, {"a": ("x", "y")}, YES),
        ({"fact": "a", "contains": "ix"}, {"a": "six"}, YES),
        ({"fact": "a", "contains": "ix"}, {"a": ("six",)}, NO),
        ({"fact": "a", "below": "64M"}, {"a": (64 << 20) - 1}, YES),
        ({"fact": "a", "below": "64M"}, {"a": 64 << 20}, NO),
        ({"fact": "a", "above": 1}, {"a": "none"}, NO),
        ({"fact": "a", "above": "b", "times": 0.5}, {"a": 6, "b": 10}, YES),
        ({"fact": "a", "above": "b", "times": 0.5}, {"a": 5, "b": 10}, NO),
        ({"fact": "a", "above": "b"}, {"a": 6, "b": "none"}, NO),
        ({"fact": "a", "above": "b"}, {"a": 6}, UNKNOWN),
        ({"all": [{"fact": "a", "equals": 1}, {"fact": "b", "equals": 1}]}, {"a": 1}, UNKNOWN),
        ({"all": [{"fact": "a", "equals": 1}, {"fact": "b", "equals": 1}]}, {"a": 2}, NO),
        ({"any": [{"fact": "a", "equals": 1}, {"fact": "b", "equals": 1}]}, {"a": 1}, YES),
        ({"any": [{"fact": "a", "equals": 1}, {"fact": "b", "equals": 1}]}, {"a": 2}, UNKNOWN),
        ({"any": [{"fact": "a", "equals": 1}, {"fact": "b", "equals": 1}]}, {"a": 2, "b": 2}, NO),
    ],
)
def test_a_predicate_says_yes_no_or_that_a_fact_is_not_known(
    predicate: dict[str, Any], facts: dict[str, Any], expected: Answer
) -> None:
    assert ASK.validate_json(json.dumps(predicate)).ask(facts) is expected


def test_a_predicate_tells_every_fact_that_it_asks_for() -> None:
    asked = ASK.validate_json(
        '{"all": [{"fact": "a", "above": "b"}, {"any": [{"fact": "c", "below": 1}, {"fact": "a", "equals": 1}]}]}'
    )
    assert list(asked.facts()) == ["a", "b", "c", "a"]
