"""Margins of a study file: what is taken, and how the rest is refused."""

from __future__ import annotations

import pytest

from tare.analyze.metrics import METRICS
from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.study.starter import starter

STUDY = starter("tiny")
LINE = len(STUDY.splitlines()) + 1


def test_margins_are_read_and_are_none_by_default() -> None:
    assert loads(STUDY, installed()).margins == {}
    text = f"{STUDY}margins: {{throughput: 0.05, read_latency_p95: 0.1, cpu_per_operation: 0.2}}\n"
    assert loads(text, installed()).margins == {
        "throughput": 0.05,
        "read_latency_p95": 0.1,
        "cpu_per_operation": 0.2,
    }


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        (
            "{througput: 0.05}",
            f"{LINE}:11: margins.througput: unknown value 'througput' (did you mean \"throughput\"?)",
        ),
        ("{throughput: 5}", f"{LINE}:11: margins.throughput: must be less than 1, got 5"),
        ("{throughput: 0}", f"{LINE}:11: margins.throughput: must be greater than 0, got 0"),
        ("{throughput: 5%}", f"{LINE}:11: margins.throughput: expected a number, got '5%'"),
        ("0.05", f"{LINE}:1: margins: expected a mapping, got 0.05"),
        ("{}", f"{LINE}:1: margins: must not be empty"),
    ],
)
def test_a_wrong_margin_is_refused_with_its_place(margins: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        loads(f"{STUDY}margins: {margins}\n", installed())
    assert message in str(caught.value)


def test_margins_belong_to_what_a_store_is_held_against() -> None:
    plain, one, other = (
        expand(loads(STUDY + text, installed())).digest
        for text in ("", "margins: {throughput: 0.05}\n", "margins: {throughput: 0.1}\n")
    )
    assert len({plain, one, other}) == 3


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_offered_for_a_misspelt_one(name: str) -> None:
    with pytest.raises(StudyError, match=f'did you mean "{name}"'):
        loads(f"{STUDY}margins: {{{name}x: 0.05}}\n", installed())
