"""Which levels are run at a scale, and what is left out by rules with several levels."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry


def test_a_scale_runs_the_levels_that_it_names(text: str, registry: Registry) -> None:
    small = text.replace("  demo:\n", "  demo:\n    only: {path: [bare, host], load: 16}\n")
    study = loads(small, registry, "demo")
    assert [arm.name for arm in study.arms] == ["bare-load-16", "host-load-16"]
    assert study.factors == {"path": ("bare", "host"), "load": ("16",)}
    assert len(loads(small, registry).arms) == 7


def test_published_figures_of_arms_that_are_not_run_stay_away(text: str, registry: Registry) -> None:
    small = text.replace("  demo:\n", "  demo:\n    only: {path: [bare, host]}\n")
    assert [dict(each.levels) for each in loads(small, registry, "demo").published] == [
        {"path": "bare", "load": "16"}
    ]
    assert len(loads(small, registry).published) == 2


@pytest.mark.parametrize(
    ("rule", "where", "what"),
    [
        ("{path: bare, load: 16}", "only", "fewer than two arms"),
        ("{paths: bare}", "only.paths", "no factor 'paths'"),
        ("{path: [bare, hosst]}", "only.path", "no level 'hosst'"),
        ("{path: []}", "only.path", "must not be empty"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(text: str, registry: Registry, rule: str, where: str, what: str) -> None:
    with pytest.raises(StudyError) as caught:
        loads(text.replace("  demo:\n", f"  demo:\n    only: {rule}\n"), registry)
    assert where in str(caught.value)
    assert what in str(caught.value)


def test_a_scale_without_the_baseline_is_refused(text: str, registry: Registry) -> None:
    with pytest.raises(StudyError, match="no arm has these levels"):
        loads(text.replace("  demo:\n", "  demo:\n    only: {path: [host, bridge]}\n"), registry)


def test_several_levels_are_excluded_by_one_rule(text: str, registry: Registry) -> None:
    fewer = text.replace("{path: published, load: 1}", "{path: [published, bridge], load: 1}")
    names = [arm.name for arm in loads(fewer, registry).arms]
    assert "bridge-load-1" not in names
    assert "published-load-1" not in names
    assert "bridge-load-16" in names


QUANTITIES = """
quantities:
  trim: 2
  wanted:
    cpu_ovh:
      - {low: 0.1, high: 0.3, when: busy, where: text}
    e_ovh: []
"""


def test_quantities_of_a_source_are_kept(text: str, registry: Registry) -> None:
    quantities = loads(text + QUANTITIES, registry).quantities
    assert quantities is not None
    assert (quantities.every_s, quantities.trim) == (1.0, 2)
    assert list(quantities.wanted) == ["cpu_ovh", "e_ovh"]
    assert quantities.wanted["cpu_ovh"][0].high == 0.3


def test_a_scale_may_drop_fewer_samples(text: str, registry: Registry) -> None:
    shorter = text.replace(
        "      workload.measure_s: 4\n", "      workload.measure_s: 4\n      quantities.trim: 1\n"
    )
    quantities = loads(shorter + QUANTITIES, registry, "demo").quantities
    assert quantities is not None
    assert quantities.trim == 1


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("cpu_ovh", "cpu_overhead", "cpu_overhead"),
        ("low: 0.1", "low: 0.4", "low is above high"),
        ("trim: 2", "trim: -1", "at least 0"),
    ],
)
def test_wrong_quantities_are_refused(text: str, registry: Registry, old: str, new: str, what: str) -> None:
    with pytest.raises(StudyError, match=what):
        loads(text + QUANTITIES.replace(old, new), registry)
