"""One arm with more and more threads is a study of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tare.errors import StudyError
from tare.plan.expand import expand
from tare.plan.sweep import sweep_of
from tare.study.catalogue import studies
from tare.study.model import Study
from tare.study.reading.load import load
from tare.study.registry import installed

KNOWN = installed()


@pytest.fixture(scope="module")
def bth() -> Study:
    return load(studies()["bth-thesis"], KNOWN)


def of(study: Study, threads: tuple[int, ...] = (8, 1, 4), **more: Any) -> Study:
    return sweep_of(study, KNOWN.workloads, threads, more.pop("repetitions", 3), **more)


def test_arms_differ_in_threads_alone_and_rise(bth: Study) -> None:
    study = of(bth)
    assert [arm.settings.workload["threads"] for arm in study.arms] == [1, 4, 8]
    first = bth.arms[0].settings
    for arm in study.arms:
        assert arm.settings.sut == first.sut
        assert {**arm.settings.workload, "threads": 450} == dict(first.workload)
    assert study.varies == {"threads": ("workload.threads",)}
    assert study.name == "bth-thesis-sweep"
    assert len(expand(study).runs) == 9


def test_any_arm_may_be_swept(bth: Study) -> None:
    study = of(bth, arm="container-write-full")
    assert {arm.settings.sut.deployment for arm in study.arms} == {"container"}
    with pytest.raises(StudyError, match="bth-thesis has no arm 'contaner-write-full'") as error:
        of(bth, arm="contaner-write-full")
    assert error.value.hint == 'did you mean "container-write-full"?'


def test_a_number_of_operations_gives_way_to_the_time(bth: Study) -> None:
    arm = bth.arms[0]
    ycsb = arm.settings.model_copy(
        update={"workload_name": "ycsb", "workload": {"measure_s": 5.0, "operations": 100, "threads": 2}}
    )
    study = of(bth.model_copy(update={"arms": (arm.model_copy(update={"settings": ycsb}),)}), threads=(1, 500))
    assert [each.settings.workload["operations"] for each in study.arms] == [None, None]


@pytest.mark.parametrize(
    ("workload", "name", "why"),
    [
        ({"measure_s": 5.0, "fixed": 100}, "cassandra-stress", "workload.fixed of .* sets a rate"),
        ({"measure_s": 5.0, "target": 100}, "ycsb", "workload.target of .* sets a rate"),
        ({"measure_s": 5.0, "sustainable": {"within_ms": 1.0}}, "tare-load", "workload.sustainable of .* sets"),
    ],
)
def test_what_asks_for_a_rate_is_refused(workload: dict[str, Any], name: str, why: str, bth: Study) -> None:
    arm = bth.arms[0]
    settings = arm.settings.model_copy(update={"workload_name": name, "workload": workload})
    with pytest.raises(StudyError, match=why):
        of(bth.model_copy(update={"arms": (arm.model_copy(update={"settings": settings}),)}))


def test_one_number_of_threads_is_no_sweep(bth: Study) -> None:
    with pytest.raises(StudyError, match="at least two numbers of threads"):
        of(bth, threads=(4, 4))


def test_tare_load_is_swept_by_its_connections(bth: Study) -> None:
    arm = bth.arms[0]
    given = {"measure_s": 5.0, "connections": 2, "threads": 1, "stages": [], "trace": [], "ycsb": {"records": 10}}
    native = arm.settings.model_copy(update={"workload_name": "tare-load", "workload": given})
    study = of(bth.model_copy(update={"arms": (arm.model_copy(update={"settings": native}),)}), threads=(1, 50))
    assert [each.settings.workload["connections"] for each in study.arms] == [1, 50]
    assert [each.settings.workload["threads"] for each in study.arms] == [1, 1]
    assert study.varies == {"threads": ("workload.connections",)}
