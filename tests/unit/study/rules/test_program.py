"""A study whose workload needs no database: what may be left out, and what is then refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tare.errors import StudyError
from tare.study.model import Study
from tare.study.reading.load import loads
from tare.study.registry import Registry

STUDY = """\
format: 1
name: alone
question: What does a container cost a program?
sut:
  image: mariadb
  deployment: container
workload:
  name: load
  measure_s: 10
factors:
  deployment:
    sets: sut.deployment
    levels: [bare, container]
baseline: bare
"""


def load(registry: Registry, text: str) -> Study:
    return loads(text, replace(registry, programs=frozenset({"load"})))


def test_client_and_database_are_left_out(registry: Registry) -> None:
    study = load(registry, STUDY)
    for arm in study.arms:
        assert arm.settings.client is None
        assert arm.settings.sut.database is None
        assert list(arm.settings.sides) == ["sut"]


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("workload:", "client: {image: mariadb, deployment: bare}\nworkload:", "client:", "has no client"),
        ("  deployment: container", "  deployment: container\n  database: mariadb", "sut.database", "no database"),
        ("  deployment: container", "  deployment: container\n  settings: {a: 1}", "sut.settings", "no database"),
        ("  deployment: container", "  deployment: container\n  network: bridge", "sut.network", "have no effect"),
    ],
)
def test_what_is_for_two_sides_is_refused(registry: Registry, old: str, new: str, where: str, what: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(registry, STUDY.replace(old, new, 1))
    assert where in str(caught.value)
    assert what in str(caught.value)
    assert caught.value.hint


def test_a_workload_that_drives_a_database_needs_both(registry: Registry) -> None:
    with pytest.raises(StudyError, match="client: this key is missing"):
        loads(STUDY, registry)
    with_client = STUDY.replace("workload:", "client: {image: mariadb, deployment: bare}\nworkload:", 1)
    with pytest.raises(StudyError, match=r"sut\.database: this key is missing"):
        loads(with_client, registry)


def test_a_level_cannot_set_a_client_that_is_not_there(registry: Registry) -> None:
    key = "    sets: sut.deployment\n    levels: [bare, container]"
    patches = "    levels:\n      bare: {}\n      boxed: {client.deployment: container}"
    factor = STUDY.replace(key, patches)
    with pytest.raises(StudyError, match="has no client"):
        load(registry, factor)
