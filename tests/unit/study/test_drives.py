"""A study whose workload cannot drive its database is refused when it is read, with nothing made or started."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import installed

REGISTRY = installed()
STUDY = """
format: 1
name: aimed
question: Does it drive that?
sut: {image: mariadb, database: DATABASE, deployment: bare, network: host}
client: {image: ycsb, deployment: bare, network: host}
workload: {WORKLOAD, measure_s: 10}
factors:
  where: {sets: sut.deployment, levels: [bare, container]}
baseline: bare
"""


def refusal(database: str, workload: str) -> str:
    with pytest.raises(StudyError) as error:
        loads(STUDY.replace("DATABASE", database).replace("WORKLOAD", workload), REGISTRY)
    return str(error.value)


@pytest.mark.parametrize(
    ("database", "workload", "why"),
    [
        (
            "mariadb",
            "name: cassandra-stress",
            "cassandra-stress does not support mariadb (arm 'bare') (it supports c",
        ),
        ("redis", "name: sysbench, script: oltp_point_select", "sysbench does not support redis"),
        (
            "mariadb",
            "name: ycsb, binding: cql",
            "the binding cql does not support mariadb (arm 'bare') (jdbc does)",
        ),
        (
            "mariadb",
            'name: ycsb, home: /opt/mine, properties: {table: "a b"}',
            "'a b' is not a plain name of a table",
        ),
    ],
)
def test_what_a_workload_cannot_drive_is_told_at_its_name(database: str, workload: str, why: str) -> None:
    words = refusal(database, workload)
    assert why in words
    assert "7:12: workload.name" in words


def test_a_factor_that_makes_it_so_is_blamed() -> None:
    text = STUDY.replace("DATABASE", "mariadb").replace("WORKLOAD", "name: sysbench, script: oltp_point_select")
    text = text.replace(
        "sets: sut.deployment, levels: [bare, container]", "sets: sut.database, levels: [mariadb, redis]"
    )
    with pytest.raises(StudyError, match=r"factors\.where.*does not support redis .arm 'redis'"):
        loads(text.replace("baseline: bare", "baseline: mariadb"), REGISTRY)


def test_a_job_that_loads_nothing_is_no_fault() -> None:
    job = "name: tare-load, job: {operations: [{name: ping, steps: [{send: PING}]}]}"
    study = loads(STUDY.replace("DATABASE", "redis").replace("WORKLOAD", job), REGISTRY)
    assert study.arms[0].settings.workload_name == "tare-load"
