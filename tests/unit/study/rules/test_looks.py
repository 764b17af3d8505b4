"""Keys of the looks in a study file: what goes together, and the margin that throughput then has."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.model import Study
from tare.study.reading.load import loads
from tare.study.registry import installed

TEXT = """\
format: 1
name: looked-at
question: Does a container cost less than 2 %?
sut: {image: fio, deployment: container}
workload: {name: fio, rw: write, measure_s: 5}
protocol: {name: interleave, looks: any, margin: 0.02}
factors:
  side:
    sets: sut.deployment
    levels: [bare, container]
  size:
    sets: workload.size
    levels: {small: 16M, large: 32M}
baseline: {side: bare}
conditions: [size]
"""


def read(text: str) -> Study:
    return loads(text, installed())


def test_the_margin_that_ends_a_study_is_that_of_its_verdict() -> None:
    assert read(TEXT).margins == {"throughput": 0.02}
    assert read(f"{TEXT}margins: {{latency_p95: 0.1}}\n").margins == {"throughput": 0.02, "latency_p95": 0.1}
    assert read(f"{TEXT}margins: {{throughput: 0.02}}\n").margins == {"throughput": 0.02}
    assert expand(read(TEXT)).study.margins == {"throughput": 0.02}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"{TEXT}margins: {{throughput: 0.05}}\n", "0.02 differs from margins.throughput, 0.05"),
        (
            TEXT.replace("margin: 0.02", "anytime: sign-flip"),
            "and the separate blocks of conditions break these up",
        ),
        (TEXT.replace("looks: any, ", ""), "`margin` needs `looks: any`"),
    ],
)
def test_what_does_not_go_together_is_refused(text: str, what: str) -> None:
    with pytest.raises(StudyError, match=what):
        read(text)


def test_conditions_go_with_a_margin() -> None:
    assert read(TEXT).protocol.model_dump()["margin"] == 0.02
