"""The benchmark of known causes: its verdicts, its table, and that it expects what there can be."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML
from tests.unit.report.explain.test_words import arm, part

from bench.explain.__main__ import CAUSES, judge, table, told_cost
from bench.explain.cases import CASES
from tare.analyze.explain.components import components
from tare.analyze.explain.explanation import HELPERS, SHIM, wait_title
from tare.analyze.explain.waiting import Wait

EXPECTED = YAML(typ="safe").load(CAUSES)["arms"]
KNOWN = {each.name for each in components().components} | {HELPERS, SHIM} | {wait_title(kind) for kind in Wait}


def test_every_case_has_an_expectation_and_every_expectation_a_case() -> None:
    assert set(CASES) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_what_is_expected_is_something_that_can_come_out(name: str) -> None:
    assert {EXPECTED[name]["key"], *EXPECTED[name].get("also_keys", [])} <= KNOWN


def test_a_hit_is_the_expected_cause_or_one_of_equal_right() -> None:
    result = arm((part("netfilter", 9.0, 0.0), part("bridge", 3.0, 0.0)))
    assert judge("nat-10", {"first": "NAT", "key": "netfilter"}, result).hit
    assert judge("nat-10", {"first": "NAT", "key": "x", "also_keys": ["netfilter"]}, result).hit
    missed = judge("nat-10", {"first": "NAT", "key": "bridge"}, result)
    assert (missed.hit, missed.observed) == (False, "netfilter")
    nothing = judge("nat-10", {"first": "NAT", "key": "bridge"}, arm((part("bridge", 1.0, 0.9),)))
    assert (nothing.hit, nothing.observed) == (False, "nothing shown")


def test_the_table_tells_the_hit_rate() -> None:
    hit = judge("nat-10", {"first": "NAT", "key": "netfilter"}, arm((part("netfilter", 9.0, 0.0),)))
    missed = judge("quota", {"first": "throttled", "key": "x"}, arm((part("netfilter", 9.0, 0.0),)))
    assert table([hit, missed]).endswith("Hit rate: 1 of 2.")


def test_the_cost_is_a_ratio_with_its_interval() -> None:
    from bench.explain.runs import Measured

    run = Measured(times=None, seconds=3.0, per_s=100.0, profile_bytes=2048)  # type: ignore[arg-type] # not looked at
    text = told_cost([0.99, 0.98, 1.0], [run], [0.004])
    assert "-1.00 %" in text
    assert "0.40 % at most" in text
    assert "2 KiB in the middle" in text
