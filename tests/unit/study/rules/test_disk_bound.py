"""Which arms are meant to be bound by the disk."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.reading.load import loads
from tare.study.registry import Registry
from tare.study.rules.levels import is_disk_bound


def test_arms_with_the_levels_are_meant_and_no_others(text: str, registry: Registry) -> None:
    study = loads(text + "disk_bound: {path: [bare, host]}\n", registry)
    meant = {arm.name for arm in study.arms if is_disk_bound(study, arm.name)}
    assert meant == {arm.name for arm in study.arms if arm.levels["path"] in ("bare", "host")}
    plain = loads(text, registry)
    assert not any(is_disk_bound(plain, arm.name) for arm in plain.arms)


def test_what_is_meant_decides_nothing_that_is_run(text: str, registry: Registry) -> None:
    meant = expand(loads(text + "disk_bound: {path: bare}\n", registry))
    assert meant.digest == expand(loads(text, registry)).digest


@pytest.mark.parametrize(
    ("rule", "where", "what"),
    [
        ("{paths: bare}", "disk_bound.paths", "no factor 'paths'"),
        ("{path: bar}", "disk_bound.path", "no level 'bar'"),
        ("{}", "disk_bound", "must not be empty"),
    ],
)
def test_what_no_arm_can_have_is_refused(text: str, registry: Registry, rule: str, where: str, what: str) -> None:
    with pytest.raises(StudyError) as caught:
        loads(f"{text}disk_bound: {rule}\n", registry)
    assert where in str(caught.value)
    assert what in str(caught.value)


def test_a_condition_has_no_arm_of_its_own(text: str, registry: Registry) -> None:
    study = text[: text.index("exclude:")] + "baseline: {path: bare}\nconditions: [load]\n"
    with pytest.raises(StudyError, match="is a condition"):
        loads(f"{study}disk_bound: {{load: 16}}\n", registry)
