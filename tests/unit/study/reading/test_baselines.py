"""A baseline for each arm: the one that is like it but for the factors that `baseline` names."""

from __future__ import annotations

import pytest

from tare.plan.expand import expand
from tare.study.model import Study
from tare.study.reading.load import loads
from tare.study.registry import Registry


@pytest.fixture
def study(text: str, registry: Registry) -> Study:
    partial = text.replace("baseline: {path: bare, load: 16}", "baseline: {path: bare}")
    return loads(partial, registry)


def test_each_arm_is_compared_with_the_one_that_is_else_like_it(study: Study) -> None:
    assert study.baseline_levels == {"path": "bare"}
    assert study.baseline_of("bridge-load-1") == "bare-load-1"
    assert study.baseline_of("bridge-load-16") == "bare-load-16"
    assert study.baseline_of("published-load-16") == "bare-load-16"


def test_a_baseline_is_its_own(study: Study) -> None:
    assert study.baseline_of("bare-load-1") == "bare-load-1"
    assert study.baseline_of("bare-load-16") == "bare-load-16"


def test_the_control_repeats_the_first_baseline(study: Study) -> None:
    assert study.baseline == "bare-load-1"
    made = expand(study).study
    assert made.baseline_of("baseline-again") == "bare-load-1"


def test_a_baseline_named_whole_is_one_for_all(text: str, registry: Registry) -> None:
    study = loads(text, registry)
    assert study.baseline_levels == {}
    assert {study.baseline_of(arm.name) for arm in study.arms} == {"bare-load-16"}


def test_published_figures_are_related_to_the_arm_s_own_baseline(text: str, registry: Registry) -> None:
    more = text.replace("baseline: {path: bare, load: 16}", "baseline: {path: bare}").replace(
        "deviations: [It is another machine.]",
        "  - {levels: {path: bare, load: 1}, metric: throughput, value: 1000, unit: tps, where: text}\n"
        "  - {levels: {path: host, load: 1}, metric: throughput, value: 900, unit: tps, where: text}\n"
        "deviations: [It is another machine.]",
    )
    figures = {tuple(each.levels.values()): each.relative for each in loads(more, registry).published}
    assert figures["host", "1"] == pytest.approx(-0.1)
    assert figures["published", "16"] == pytest.approx(2200 / 7100 - 1)
