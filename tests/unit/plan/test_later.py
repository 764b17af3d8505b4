"""A key that came later orphans no store: by default it is no part of a plan's digest."""

from __future__ import annotations

import pytest
from tests.unit.plan.test_expand import a_study
from tests.unit.shipped import shipped

from tare.plan.expand import LATER_IN_ARM, LATER_IN_PROTOCOL, expand, without_defaults
from tare.study.protocol_spec import PROTOCOL_SPECS
from tare.workloads.tare_load.parameters import TareLoadParameters

OF_THE_FIRST_STORES = "a23fbd1dc3a0a54c936df659197a3753ed47e546135db646f714ca9c17deab26"
"""Of `a_study()`, as stores of it have it since 2026-11-21. Never renewed: a store in use somewhere has it."""


def test_a_study_without_any_later_key_keeps_its_digest() -> None:
    assert expand(a_study()).digest == OF_THE_FIRST_STORES


@pytest.mark.parametrize(
    ("name", "digest"),
    [("redis-paths", "441765479dd0"), ("mariadb-paths", "def139892cc3"), ("seybold-2018", "777b10098d3b")],
)
def test_stores_of_a_shipped_study_go_on(name: str, digest: str) -> None:
    """Options of databases and generators came later too. Renew a digest only where its study was changed."""
    assert expand(shipped(name, "demo")).digest.startswith(digest)


def test_a_later_key_away_from_its_default_is_another_study() -> None:
    study = a_study()
    auto = study.protocol.model_copy(update={"measure": "auto"})
    assert expand(study.model_copy(update={"protocol": auto})).digest != OF_THE_FIRST_STORES


@pytest.mark.parametrize(
    ("tree", "left"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 2, "c": 2}}, {"a": {"b": 2, "c": 2}}),
        ({"a": {"b": True}}, {"a": {"b": True}}),
        ({"a": None}, {"a": None}),
        ({}, {}),
    ],
)
def test_only_what_is_the_default_is_left_out(tree: dict[str, object], left: dict[str, object]) -> None:
    assert without_defaults(tree, {"a.b": 1}) == left


def test_what_is_around_falls_only_once_all_in_it_has_fallen() -> None:
    later = {"of.*.optional": False, "of": {"x": {}}}
    assert without_defaults({"of": {"x": {"optional": False}}}, later) == {}
    assert without_defaults({"of": {"x": {"optional": True}}}, later) == {"of": {"x": {"optional": True}}}


def test_the_tree_that_was_given_is_left_as_it_is() -> None:
    tree = {"a": {"b": 1}}
    without_defaults(tree, {"a.b": 1})
    assert tree == {"a": {"b": 1}}


def test_every_path_names_a_key_there_is() -> None:
    arm = expand(a_study()).study.arms[0].model_dump(mode="json")
    assert set(LATER_IN_PROTOCOL) <= {key for spec in PROTOCOL_SPECS.values() for key in spec.model_fields}
    for path in LATER_IN_ARM:
        if (option := path.removeprefix("settings.workload.")) != path:
            assert option in TareLoadParameters.model_fields, path
            continue
        at = arm
        for step in path.split("."):
            if step == "*":
                break
            assert step in at, path
            at = at[step]
