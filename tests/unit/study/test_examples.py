"""Every study among the documentation's examples is right, and compares what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.study.reading.load import load
from tare.study.registry import installed

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("confinement", 4), ("containerd", 5), ("cpu-limits", 4), ("memory-limits", 3), ("engines", 4),
        ("rootless", 7), ("runtimes", 3), ("gate", 2), ("pod-clients", 3), ("pod-volumes", 2),
    ],
)  # fmt: skip
def test_an_example_can_be_run_as_it_stands(name: str, levels: int) -> None:
    study = load(EXAMPLES / name / "study.yaml", installed())
    assert study.name == name
    assert len(study.factors) == 1
    (factor,) = study.factors.values()
    assert len(factor) == levels <= len(study.arms)


@pytest.mark.parametrize("name", ["redis", "postgresql", "mariadb"])
def test_two_generators_are_compared_on_the_same_arms(name: str) -> None:
    study = load(EXAMPLES / f"generators-{name}" / "study.yaml", installed())
    assert study.name == f"generators-{name}"
    generators = {
        level: {arm.levels["path"] for arm in study.arms if arm.levels["generator"] == level}
        for level in study.factors["generator"]
    }
    assert len(generators) == 2
    assert len(set(map(frozenset, generators.values()))) == 1
    times = {(arm.settings.workload["warmup_s"], arm.settings.workload["measure_s"]) for arm in study.arms}
    assert len(times) == 1, "both measure as long"
    assert {study.baseline_of(arm.name) for arm in study.arms} == {f"bare-{level}" for level in generators}
