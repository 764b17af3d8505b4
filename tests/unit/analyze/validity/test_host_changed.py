"""A host or engine that was changed between the runs of a store is named, with the change and the runs after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.runs import select_runs
from tare.analyze.validity import check
from tare.analyze.validity.evidence import Alarm
from tare.record.run_record import RunRecord

ARMS = ("bare", "bridge")
SYSCTLS = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_congestion_control": "cubic"}


def alarms(records: list[RunRecord]) -> list[Alarm]:
    every = check(synthetic.study(ARMS), select_runs(synthetic.study(ARMS), records))
    return [alarm for alarm in every if alarm.rule == "host-changed"]


def from_block(first: int, change: Callable[[dict[str, Any]], None]) -> list[RunRecord]:
    def whole(tree: dict[str, Any]) -> None:
        tree["host"] |= {"sysctls": dict(SYSCTLS), "somaxconn": 4096, "swappiness": 60, "cpu_numa_balancing": True}
        if tree["block"] >= first:
            change(tree)

    return [synthetic.changed(each, whole) for each in synthetic.records(ARMS, blocks=4)]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("somaxconn", 128, "somaxconn from 4096 to 128"),
        ("swappiness", 1, "swappiness from 60 to 1"),
        ("cpu_numa_balancing", False, "cpu_numa_balancing from yes to no"),
        ("thp", "always", "thp from madvise to always"),
        ("sysctls", SYSCTLS | {"net.ipv4.tcp_congestion_control": "bbr"},
         "net.ipv4.tcp_congestion_control from cubic to bbr"),
        ("sysctls", SYSCTLS | {"net.ipv4.tcp_rmem": "4096 87380 4194304"},
         "net.ipv4.tcp_rmem from 4096 131072 6291456 to 4096 87380 4194304"),
        ("cpu_mitigations", {"spectre_v2": "Vulnerable", "meltdown": "Not affected"},
         "cpu_mitigations.spectre_v2 from Mitigation: Retpolines to Vulnerable"),
    ],
)  # fmt: skip
def test_a_fact_that_changed_between_blocks_is_named_with_the_runs_after_it(
    key: str, value: object, words: str
) -> None:
    records = from_block(2, lambda tree: tree["host"].update({key: value}))
    (alarm,) = alarms(records)
    assert alarm.what == f"between the runs, the host was changed: {words}"
    assert set(alarm.runs) == {record.run_id for record in records if record.block >= 2}


def test_an_engine_that_was_upgraded_is_named() -> None:
    records = from_block(3, lambda tree: tree["engine"].update({"engine_version": "27.0.1"}))
    (alarm,) = alarms(records)
    assert (
        alarm.what
        == "between the runs, the engine docker was changed: engine_version from 20.10.24+dfsg1 to 27.0.1"
    )


def test_a_value_that_could_not_be_read_is_no_change() -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["host"] |= {"somaxconn": None, "sysctls": None}
        del tree["host"]["swappiness"]

    assert not alarms(from_block(2, change))


def test_what_runs_change_themselves_is_no_change() -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["host"] |= {"ip_forward": True, "load_1min": 3.0, "data_free_bytes": 1, "netfilter_rules": 40}

    assert not alarms(from_block(1, change))


def test_two_engines_or_two_sites_may_differ() -> None:
    def other_engine(tree: dict[str, Any]) -> None:
        if tree["arm"] == "bridge":
            tree["engine"] = {"engine": "podman", "engine_version": "4.3.1"}

    def other_site(tree: dict[str, Any]) -> None:
        tree["site"] = "second"
        tree["host"]["somaxconn"] = 128

    assert not alarms(from_block(0, other_engine))
    assert not alarms(from_block(2, other_site))


def test_of_many_changes_four_are_named_and_the_rest_counted() -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["host"] |= {"somaxconn": 1, "swappiness": 1, "thp": "never", "kernel": "6.6.1", "cgroup_layout": "v2"}

    (alarm,) = alarms(from_block(1, change))
    assert alarm.what.endswith("; and 1 more")
