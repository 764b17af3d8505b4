"""Which studies may be compared, and what is said where they may not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.errors import NotComparable
from tare.plan.expand import expand
from tare.plan.extension import shared
from tare.plan.model import Plan
from tare.study.model import StorageSpec, Study
from tare.study.protocol_spec import DuetSpec, InterleaveSpec

ARMS = ("bare", "host", "bridge")


def plan(study: Study | None = None) -> Plan:
    return expand(synthetic.study(ARMS) if study is None else study)


def with_settings(side: str, **changes: Any) -> Study:
    """The study with other settings of one side of every arm."""
    study = synthetic.study(ARMS)
    arms = []
    for arm in study.arms:
        part = changes if side == "workload" else None
        settings = (
            arm.settings.model_copy(update={"workload": {**arm.settings.workload, **changes}})
            if part is not None
            else arm.settings.model_copy(update={side: getattr(arm.settings, side).model_copy(update=changes)})
        )
        arms.append(arm.model_copy(update={"settings": settings}))
    return study.model_copy(update={"arms": tuple(arms)})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (synthetic.study(ARMS).model_copy(update={"name": "other"}), "name is percona-2016 in A and other in B"),
        (synthetic.study(ARMS).model_copy(update={"scale": "full"}), "scale is demo in A and full in B"),
        (with_settings("workload", threads=64), "settings.workload.threads is 16 in A and 64 in B"),
        (with_settings("workload", script=""), 'workload.script is oltp_read_only in A and "" in B'),
        (with_settings("sut", database="mongodb"), "settings.sut.database is mariadb in A and mongodb in B"),
        (with_settings("client", deployment="container"), "settings.client.deployment is bare in A"),
        (with_settings("sut", storage=StorageSpec(kind="layer")), "storage.kind is not set in A and layer in B"),
        (synthetic.study(ARMS).model_copy(update={"baseline": "host"}), "the baseline is bare in A and host in B"),
        (synthetic.study(("bare", "shared")), "no arm in common"),
        (synthetic.study(ARMS).model_copy(update={"protocol": DuetSpec(name="duet")}), "name is interleave"),
    ],
)  # fmt: skip
def test_another_question_is_refused_with_what_makes_it_another(other: Study, message: str) -> None:
    with pytest.raises(NotComparable, match=r"A and B are not the same study|no arm in common") as error:
        shared(plan(), plan(other))
    assert error.value.exit_code == 5
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("other", "key"),
    [
        (with_settings("sut", image="docker://mariadb:11"), "arms.bare.settings.sut.image"),
        (with_settings("sut", settings={"innodb_buffer_pool_size": "1G"}), "innodb_buffer_pool_size"),
        (with_settings("workload", measure_s=60.0), "arms.host.settings.workload.measure_s"),
        (synthetic.study(ARMS).model_copy(update={"protocol": InterleaveSpec(blocks=20)}), "protocol.blocks"),
        (synthetic.study(ARMS).model_copy(update={"margins": {"throughput": 0.05}}), "margins.throughput"),
    ],
)
def test_what_one_wants_to_compare_may_differ_and_is_named(other: Study, key: str) -> None:
    result = shared(plan(), plan(other))
    assert result.arms == ("host", "bridge")
    assert [each for each in result.differences if key in each.key]


def test_an_arm_that_only_one_has_is_left_out_and_told() -> None:
    result = shared(plan(), plan(synthetic.study(("bare", "bridge", "shared"))))
    assert (result.arms, result.only_a, result.only_b) == (("bridge",), ("host",), ("shared",))
    assert not result.differences


def test_the_same_study_has_no_differences() -> None:
    assert not shared(plan(), plan()).differences
