"""The study of `make bench-storage` and its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.storage.table import COLUMNS, effect, rows, table
from tare.analyze.analysis import analyze
from tare.analyze.estimate import Estimate, Finding
from tare.study.model import Study
from tare.study.reading.load import load
from tare.study.registry import installed


@pytest.fixture(scope="module")
def study() -> Study:
    return load(Path(__file__).resolve().parents[3] / "bench" / "storage" / "study.yaml", installed())


def finding(estimate: Estimate) -> Finding:
    return Finding("s", "a", {}, "b", "throughput", estimate, None, ())


def test_every_storage_is_held_against_the_host_at_the_same_work(study: Study) -> None:
    assert {column.work for column in COLUMNS} == set(study.factors["work"])
    for arm in study.arms:
        baseline = next(each for each in study.arms if each.name == study.baseline_of(arm.name))
        assert baseline.levels == {"storage": "bind", "work": arm.levels["work"]}
        assert arm.settings.sut.storage.cache == "dropped"


def test_sequential_requests_are_a_mebibyte_as_the_table_s_unit_says(study: Study) -> None:
    for arm in study.arms:
        sequential = arm.levels["work"].startswith("sequential")
        assert arm.settings.workload["bs"] == ("1M" if sequential else "16K")


def test_what_was_not_measured_is_a_hyphen(study: Study) -> None:
    results = rows(study, analyze(study, ()), {})
    assert [row[0] for row in results] == list(study.factors["storage"])
    assert {cell for row in results for cell in row[1:]} == {"-"}
    assert table(results, 0).startswith("| storage | fsync, median |")


def test_a_storage_of_which_a_run_was_emulated_is_marked(study: Study) -> None:
    nothing = analyze(study, ())
    (first, *others) = [row[0] for row in rows(study, nothing, {"volume-fsync": ("sut",)}) if "(" in row[0]]
    assert (first, others) == ("(emulated) volume", [])
    by_baseline = [row[0] for row in rows(study, nothing, {study.baseline_of("volume-fsync"): ("sut",)})]
    assert by_baseline[0] == "(emulated) bind"
    assert set(by_baseline[1:]) == {f"(baseline emulated) {name}" for name in study.factors["storage"][1:]}


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.123, 0.08, 0.151, 5, 0.95, "t"), "+12 % [+8, +15]"),
        (Estimate(-0.5, None, None, 2, 0.95, "t"), "-50 % (n = 2)"),
        (Estimate(None, None, None, 0, 0.95, "t"), "-"),
    ],
)
def test_an_effect_is_told_with_its_interval(estimate: Estimate, text: str) -> None:
    assert effect(finding(estimate)) == text
