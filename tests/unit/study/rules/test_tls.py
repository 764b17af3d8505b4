"""TLS is refused, with its line, where the server or the generator has none."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import installed

STUDY = """\
format: 1
name: encrypted
question: What does TLS cost?
sut: {image: mariadb, database: mariadb, deployment: bare}
client: {image: tare-load, deployment: bare}
workload:
  name: tare-load
  ycsb: {core_workload: a, records: 100}
  measure_s: 5
protocol: {name: interleave, blocks: 8, max_minutes: 5}
factors:
  encryption:
    sets: sut.tls
    levels: {clear: false, tls: true}
baseline: clear
"""
OTHERS = {
    "tare cannot set up TLS for mongodb": (
        "image: mariadb, database: mariadb",
        "image: docker://mongo:7, database: mongodb",
    ),
    "tare cannot set up TLS for the workload ycsb": (
        "name: tare-load\n  ycsb: {core_workload: a, records: 100}",
        "name: ycsb\n  core_workload: a\n  records: 100",
    ),
}


def test_a_server_and_a_generator_that_have_it_take_it_as_a_factor() -> None:
    arms = loads(STUDY, installed()).arms
    assert [arm.settings.sut.tls for arm in arms] == [False, True]


@pytest.mark.parametrize("why", OTHERS)
def test_where_one_of_them_has_none_the_level_is_named(why: str) -> None:
    text = STUDY.replace(*OTHERS[why])
    with pytest.raises(StudyError, match=why) as refused:
        loads(text, installed())
    line = 1 + text.count("\n", 0, text.index("levels: {clear"))
    assert str(refused.value).startswith(f"study.yaml:{line}:")


def test_a_program_without_a_server_has_no_connection() -> None:
    text = STUDY.replace("client: {image: tare-load, deployment: bare}\n", "").replace(", database: mariadb", "")
    text = text.replace("name: tare-load\n  ycsb: {core_workload: a, records: 100}", "name: sysbench-cpu")
    with pytest.raises(StudyError, match="no connection to encrypt"):
        loads(text, installed())
