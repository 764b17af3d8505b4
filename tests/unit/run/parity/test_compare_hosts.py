"""Runs whose server and client are on two hosts: the client's host and the wire are held to parity, too."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.record.parts import between, route
from tests.unit.run.parity.test_compare import SERVER, found, record, study

from tare.record.observation import Parity
from tare.record.run_record import RunRecord
from tare.run.parity.compare import changed_during, differences


def wired(**changes: Any) -> RunRecord:
    """A run between two hosts."""
    side = route(device="eth0", mtu=changes.get("mtu", 1500), qdisc="fq")
    hosts = between("db", changes.get("host", "load"), sides={"sut": side, "client": side})
    return record("bare", client_host={"thp": changes.get("thp", "madvise")}, between=hosts)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"mtu": 9000}, "host: MTU of the SUT's host to the other: 1500 in bare, 9000 in bare"),
        ({"thp": "always"}, "host: transparent huge pages of the client's host: madvise in bare, always in bare"),
        ({"host": "third"}, "host: name of the client's host: load in bare, third in bare"),
    ],
)
def test_between_two_hosts_the_wire_and_the_clients_host_must_be_alike_too(
    change: dict[str, Any], difference: str
) -> None:
    assert differences(study(), wired(), wired(), SERVER) == ()
    assert difference in [str(each) for each in differences(study(), wired(), wired(**change), SERVER)]


def test_what_could_not_be_read_before_a_run_did_not_change_in_it() -> None:
    """A tare that could start no process had a run refused for 33 changes, and the study ended."""
    after = record("bare", effective={"innodb_buffer_pool_size": "1", "port": "1"})
    unread = record("bare", parity=Parity())
    assert changed_during(unread, after, SERVER) == (
        "variable innodb_buffer_pool_size: 134217728 before, 1 afterwards",
    )
    assert changed_during(unread, unread, SERVER) == ()


@pytest.mark.parametrize(
    ("fact", "words", "value", "text"),
    [
        ("cpu_governors", "CPU frequency governors", ["powersave"], "powersave"),
        ("cpu_turbo", "CPU turbo", True, "True"),
        ("cpu_numa_balancing", "NUMA balancing", True, "True"),
        ("cpu_mitigations", "mitigations of the CPU", {"meltdown": "no"}, "meltdown no"),
        ("sched_autogroup", "scheduler groups by session", True, "True"),
        ("data_mount_options", "mount options of the data path", ["rw", "noatime"], "rw,noatime"),
        ("proactive_reclaim", "proactive reclaim", ["damon_reclaim"], "damon_reclaim"),
        ("tare_is_root", "tare runs as root", True, "True"),
    ],
)
def test_so_is_one_that_is_no_text_unless_an_older_tare_did_not_keep_it(
    fact: str, words: str, value: object, text: str
) -> None:
    older, other = record("bare", host={}), record("bridge", host={fact: value})
    later = fact in ("proactive_reclaim", "tare_is_root")
    assert found(older, other) == ([] if later else [f"host: {words}: none in bare, {text} in bridge"])
    assert found(other, record("bridge", host={fact: value and type(value)()})) != []
