"""Rules on runs between two hosts: whether these are two, and what of the wire and the client's host was used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from tests.unit.analyze.validity.test_rules import alarms, only, study
from tests.unit.record.parts import between, route, sounding

from tare.analyze.validity.between import FULL, client_host_use, wire_uses
from tare.analyze.validity.load import BUSY, part_of_machine
from tare.record.between import Link, Throughput

Change = Callable[[dict[str, Any]], None]
THROUGHPUT = Throughput(1e6, 1e6)
RULES = {"one-kernel", "wire-bound", "client-host-bound"}


def wired(*, one_boot: bool = False, sent: float = 0.1, got: float = 0.1, busy: float = 0.5) -> Change:
    """4 s over a wire of a million bytes a second each way: parts used of it, and of the client's host."""

    def change(tree: dict[str, Any]) -> None:
        counted = {"tx_bytes": round(4e6 * sent), "rx_bytes": round(4e6 * got)}
        sides = {"client": route(counters=counted)}
        tree["between"] = asdict(between(one_boot=one_boot, throughput=THROUGHPUT, sides=sides))
        tree["usage"]["client_machine"] = {"user": 8 * busy, "idle": 8 * (1 - busy), "iowait": 0.0}

    return change


def rules(change: Change) -> set[str]:
    return RULES & {alarm.rule for alarm in alarms(study(4, change=change))}


def test_two_machines_with_room_on_the_wire_raise_no_alarm() -> None:
    assert rules(wired()) == set()


def test_runs_on_one_host_raise_none_either() -> None:
    assert rules(lambda tree: None) == set()


def test_hosts_of_one_kernel_are_named_as_such_once() -> None:
    alarm = only(study(4, change=wired(one_boot=True)), "one-kernel")
    assert alarm.arm is None
    assert "not on two machines" in alarm.what
    assert len(alarm.runs) == 8


@pytest.mark.parametrize(("sent", "got"), [(FULL, 0.1), (0.1, FULL)])
def test_a_wire_that_is_full_either_way_set_the_rate(sent: float, got: float) -> None:
    assert rules(wired(sent=sent, got=got)) == {"wire-bound"}
    assert rules(wired(sent=min(sent, 0.79), got=min(got, 0.79))) == set()


def cluster(*, second: float = 0.1, client: float = 0.1, speed_mbit: int | None = None) -> Change:
    """4 s of two nodes and a client, a host each: parts used of wires of a million bytes a second."""

    def change(tree: dict[str, Any]) -> None:
        tree["nodes"] = {"sut-1": {"on": "h1"}, "sut-2": {"on": "h2"}}
        links = [("h3", "h2"), ("h2", "h1")]
        counted = {"sut": 0.1, "sut-2": second, "client": client}
        sides = {
            side: route(counters={"tx_bytes": round(4e6 * part), "rx_bytes": 0}, speed_mbit=speed_mbit)
            for side, part in counted.items()
        }
        made = tuple(Link(asks, answers, route(), sounding(), THROUGHPUT) for asks, answers in links)
        tree["between"] = asdict(between("h1", "h3", throughput=THROUGHPUT, links=made, sides=sides))

    return change


def test_the_node_whose_wire_is_full_is_named() -> None:
    assert rules(cluster()) == set()
    assert rules(cluster(second=0.79)) == set()
    raised = {each.what for each in alarms(study(4, change=cluster(second=FULL))) if each.rule == "wire-bound"}
    assert {words.partition(" of its")[0] for words in raised} == {"the network of h2 carried 80.0 %"}


def test_a_client_s_wire_that_carries_more_than_one_node_s_is_judged_by_its_own_speed() -> None:
    assert rules(cluster(client=2.5)) == set()
    assert rules(cluster(client=2.5, speed_mbit=40)) == set()  # 5 million bytes a second
    assert rules(cluster(client=2.5, speed_mbit=24)) == {"wire-bound"}


def test_a_clients_host_that_is_busy_may_have_set_the_rate() -> None:
    assert rules(wired(busy=BUSY)) == {"client-host-bound"}
    assert rules(wired(busy=0.89)) == set()


def test_of_one_kernel_the_clients_host_is_not_judged_by_time_that_is_the_servers_too() -> None:
    assert rules(wired(one_boot=True, busy=1.0)) == {"one-kernel"}


def test_what_was_not_measured_is_not_known() -> None:
    (run, *_) = study(1)
    assert wire_uses(run) == {}
    assert client_host_use(run) is None


def test_a_client_on_another_machine_is_no_part_of_the_servers_time() -> None:
    (alone, *_) = study(1)
    (apart, *_) = study(1, change=wired())
    (shared, *_) = study(1, change=wired(one_boot=True))
    others = [part_of_machine(run, "others") for run in (alone, apart, shared)]
    assert others[0] is not None
    assert others[1] is not None
    assert others[1] - others[0] == pytest.approx(3.0 / 8.0, rel=0.05)
    assert others[2] == others[0]
