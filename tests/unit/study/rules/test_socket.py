"""A Unix socket is refused, with its reason, where one of the sides cannot use it."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.study.values import NetworkKind

STUDY = """\
format: 1
name: socket
question: What does TCP on loopback cost?
sut: {image: mariadb, database: mariadb, deployment: bare}
client: {image: sysbench, deployment: bare}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 100, threads: 2, measure_s: 5}
protocol: {name: interleave, blocks: 8, max_minutes: 5}
factors:
  path:
    sets: sut.network
    levels: {socket: socket, tcp: host}
baseline: socket
"""
REFUSED = {
    "tare cannot have mongodb serve clients at a Unix socket": (
        "database: mariadb",
        "database: mongodb",
    ),
    "the workload ycsb cannot connect to a Unix socket": (
        "name: sysbench, script: oltp_read_only, tables: 1, table_size: 100",
        "name: ycsb, core_workload: a, records: 100",
    ),
    "the client shares no directory with a Unix socket": (
        "client: {image: sysbench, deployment: bare}",
        "client: {image: sysbench, deployment: container, engine: podman-rootless}",
    ),
    "there is no TLS on a Unix socket": ("deployment: bare}\nclient", "deployment: bare, tls: true}\nclient"),
    "a Unix socket reaches no other host": (
        "sysbench, deployment: bare",
        "sysbench, deployment: bare, own_host: true",
    ),
}


def test_it_is_a_level_of_the_network() -> None:
    arms = loads(STUDY, installed()).arms
    assert [arm.settings.sut.network for arm in arms if not arm.control] == [NetworkKind.SOCKET, NetworkKind.HOST]


def test_a_loopback_address_is_a_factor_for_servers_that_can_listen_there() -> None:
    start = STUDY.index(" sut.network\n")
    text = f"{STUDY[:start]} sut.bind\n    levels: {{v4: 127.0.0.1, v6: '::1'}}\nbaseline: v4\n"
    arms = loads(text, installed()).arms
    assert [arm.settings.sut.bind for arm in arms if not arm.control] == ["127.0.0.1", "::1"]
    other = text.replace("database: mariadb", "database: mongodb")
    other = other.replace(*REFUSED["the workload ycsb cannot connect to a Unix socket"])
    with pytest.raises(StudyError, match="tare cannot have mongodb listen at ::1"):
        loads(other, installed())
    other = text.replace(
        "image: sysbench, deployment: bare", "image: sysbench, deployment: container, network: bridge"
    )
    with pytest.raises(StudyError, match="nothing outside the host's network namespace reaches"):
        loads(other, installed())


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_use_it_is_named(why: str) -> None:
    old, new = REFUSED[why]
    text = STUDY.replace(old, new, 1)
    if new == "database: mongodb":
        text = text.replace(*REFUSED["the workload ycsb cannot connect to a Unix socket"])
    assert text != STUDY
    with pytest.raises(StudyError, match=why):
        loads(text, installed())
