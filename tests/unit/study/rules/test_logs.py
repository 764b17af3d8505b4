"""Where the output of a SUT and the log of its server may go."""

from __future__ import annotations

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.registry import DATABASES
from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import installed

STUDY = """\
format: 1
name: logs
question: What does the log cost?
sut: {image: mariadb, database: mariadb, deployment: container}
client: {image: sysbench, deployment: bare}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 100, threads: 2, measure_s: 5}
protocol: {name: interleave, blocks: 8, max_minutes: 5}
factors:
  log:
    sets: [sut.log_driver, sut.log_target]
    levels: {json: {}, nowhere: {sut.log_driver: none}, file: {sut.log_target: file}}
baseline: json
"""
REFUSED = {
    "the output of `bare` goes to a file": ("deployment: container", "deployment: bare"),
    "Podman has no log driver `local`": (
        "deployment: container}\nclient",
        "deployment: container, engine: podman, log_driver: local}\nclient",
    ),
}


def test_both_are_levels() -> None:
    arms = [arm.settings.sut for arm in loads(STUDY, installed()).arms if not arm.control]
    assert [(sut.log_driver, sut.log_target) for sut in arms] == [
        ("json-file", "stderr"),
        ("none", "stderr"),
        ("json-file", "file"),
    ]


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_is_refused(why: str) -> None:
    with pytest.raises(StudyError, match=why):
        loads(STUDY.replace(*REFUSED[why]), installed())


LINES = {
    "mariadb": ["log_error = /run/tare/server.log"],
    "mysql": ["log_error = /run/tare/server.log"],
    "redis": ["logfile /run/tare/server.log"],
    "postgresql": [
        "log_directory = '/run/tare'",
        "log_filename = 'server.log'",
        "log_rotation_age = 0",
        "log_rotation_size = 0",
        "logging_collector = 'on'",
    ],
}


@pytest.mark.parametrize("database", LINES)
def test_a_server_is_told_its_file_by_its_own_setting(database: str) -> None:
    def written(log_file: str | None) -> set[str]:
        plan = ServerPlan("/data", "/run/tare", "127.0.0.1", 1, {}, Secrets("u", "p"), log_file=log_file)
        files = DATABASES[database].serve(plan).files
        return {line for text in files.values() for line in text.splitlines()}

    assert sorted(written("/run/tare/server.log") - written(None)) == LINES[database]
