"""Sysctls of the server's network namespace: declared, in force, and compared between runs and arms."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.record.parts import between
from tests.unit.run.parity.test_compare import TOKEN, record, settings, study

from tare.record.run_record import RunRecord
from tare.run.parity.compare import differences, unlike_nodes
from tare.run.parity.declared import undeclared

USUAL = {"net.core.somaxconn": "4096", "net.ipv4.tcp_rmem": "4096 131072 6291456"}


def run(arm: str, **changed: str) -> RunRecord:
    names = {"somaxconn": "net.core.somaxconn", "tcp_rmem": "net.ipv4.tcp_rmem"}
    return record(arm, sut={"network_settings": USUAL | {names[key]: value for key, value in changed.items()}})


def test_a_setting_that_changed_between_runs_of_an_arm_is_named() -> None:
    (unlike,) = differences(study(), run("bridge"), run("bridge", somaxconn="128"))
    assert str(unlike) == "SUT: network setting net.core.somaxconn: 4096 in bridge, 128 in bridge"


@pytest.mark.parametrize("key", ["sut.network", "sut.deployment", "sut.sysctls", "sut.sysctls.net.core.somaxconn"])
def test_a_factor_that_causes_it_explains_a_difference_between_arms(key: str) -> None:
    assert not differences(study((key,)), run("bare"), run("bridge", somaxconn="128"))


@pytest.mark.parametrize("key", ["sut.limits.memory", "sut.sysctls.net.ipv4.tcp_rmem"])
def test_any_other_factor_does_not(key: str) -> None:
    unlike = differences(study((key,)), run("host"), run("bridge", somaxconn="128"))
    assert [each.name for each in unlike] == ["SUT: network setting net.core.somaxconn"]


def test_settings_that_were_not_read_are_unknown_and_not_different() -> None:
    assert not differences(study(()), run("host"), record("host"))
    assert not differences(study(()), record("host", sut={"network_settings": None}), run("host"))


def test_between_hosts_each_has_settings_of_its_own() -> None:
    hosts = between()
    first, second = (run("host", somaxconn=one).model_copy(update={"between": hosts}) for one in ("128", "4096"))
    assert not [each for each in differences(study(()), first, second) if "network setting" in each.name]
    nodes = {"node 1": run("host"), "node 2": run("host", somaxconn="128")}
    assert not unlike_nodes(nodes)


@pytest.mark.parametrize(
    ("given", "sentences"),
    [
        ({"net.core.somaxconn": 4096}, []),
        ({"net.ipv4.tcp_rmem": "4096\t131072  6291456"}, []),
        ({"net.core.somaxconn": 128}, ["SUT: net.core.somaxconn: 128 declared, 4096 in force"]),
        ({"net.ipv4.tcp_ecn": 1}, ["SUT: net.ipv4.tcp_ecn: 1 declared, nothing in force"]),
    ],
)
def test_what_a_study_sets_must_be_in_force(given: dict[str, Any], sentences: list[str]) -> None:
    one = run("host")
    assert list(undeclared(settings(sysctls=given), one.parity, one.path, TOKEN)) == sentences
