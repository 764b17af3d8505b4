"""Connections are looked for as long as a client's phase lasts, and told of once."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.errors import RunFailed
from tare.record.network_path import Hop, NetworkPath
from tare.record.observation import Observation, Parity
from tare.run.attempt.server import Sut
from tare.run.clock import Clock
from tare.run.machine import Machine
from tare.run.parity.observed import EAGER_S, RunObserver, Seen, opened_to, some_unseen


def around(name: str) -> Observation:
    """In place of what is in force around a task."""
    return Observation(scheduler=name)


@dataclass
class MonitorContext:
    """Servers by name, and from when on (seconds since the client's start) each has a connection."""

    connected_s: dict[str, float]
    matched_s: float = 0.0
    opening: tuple[int, ...] = (8,)
    """How many connections each look sees, the last number from then on."""
    guest: object | None = None
    now_s: float = 0.0
    proofs: int = 0
    asked: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    """Whose surroundings were observed."""

    def monotonic(self) -> float:
        return self.now_s

    def path(self, server: Any, client: Any, host: Any) -> Any:
        del client, host
        self.asked.append(server.task.name)
        if self.connected_s[server.task.name] < 0:
            raise RunFailed("sockets cannot be read")
        if self.now_s < self.connected_s[server.task.name]:
            return None
        proved = self.now_s >= self.matched_s
        count = self.opening[min(self.proofs, len(self.opening) - 1)] if proved else 2
        self.proofs += proved
        return NetworkPath(Hop.LOOPBACK if proved else None, connections=count)

    def observe(self, instance: Any) -> Observation:
        self.read.append(instance.task.name)
        return around(instance.task.name)

    def onlooker(self, *, known: bool = False, opens: int | None = None) -> RunObserver:
        machine = SimpleNamespace(clock=cast("Clock", self), observe_path=self.path)
        return RunObserver(cast("Machine", machine), self.sut(), self.client(), known=known, opens=opens)

    def expected(self, opens: int) -> int | None:
        return opened_to(self.sut(), self.client(), opens)

    def sut(self) -> Sut:
        deployment = SimpleNamespace(observe=self.observe)
        servers = [
            SimpleNamespace(
                node=SimpleNamespace(name=name),
                host=None,
                deployment=deployment,
                instance=SimpleNamespace(task=SimpleNamespace(name=name), guest=self.guest),
            )
            for name in self.connected_s
        ]
        return Sut(cast("Any", servers))

    def client(self) -> Any:
        return SimpleNamespace(
            host=None,
            deployment=SimpleNamespace(observe=self.observe),
            instance=SimpleNamespace(task=SimpleNamespace(name="client"), guest=None),
        )

    def observed(self, onlooker: RunObserver, until_s: float) -> list[tuple[float, Seen]]:
        """What is told, and when, looking twenty times a second."""
        results = []
        while self.now_s < until_s:
            if (seen := onlooker.look()) is not None:
                results.append((self.now_s, seen))
            self.now_s = round(self.now_s + 0.05, 2)
        return results


def count_of(path: NetworkPath | None) -> int | None:
    return path and path.connections


def test_a_client_that_connects_soon_is_told_of_once() -> None:
    scene = MonitorContext({"sut": 1.0})
    ((at_s, seen),) = scene.observed(scene.onlooker(), 10.0)
    assert at_s == pytest.approx(1.0)
    assert len(scene.asked) == 20 + 2  # the second look saw no more connections
    assert seen.path == NetworkPath(Hop.LOOPBACK, connections=8)
    assert seen.parity == Parity(sut=around("sut"), client=around("client"))


def test_a_client_that_connects_late_is_told_of_without_a_path_and_again_with_it() -> None:
    scene = MonitorContext({"sut": 42.3})
    (first_s, first), (then_s, then) = scene.observed(scene.onlooker(), 60.0)
    assert first_s == pytest.approx(EAGER_S)
    assert first.path is None
    assert 42.3 <= then_s < 43.4
    assert then.path == NetworkPath(Hop.LOOPBACK, connections=8)
    assert len(scene.asked) < 20 * EAGER_S + 45  # once a second after the first few


@pytest.mark.parametrize("opening", [(5, 8, 8), (1, 5, 8), (8, 7)], ids=str)
def test_connections_that_open_one_after_the_other_are_counted_once_no_more_come(opening: tuple[int, ...]) -> None:
    scene = MonitorContext({"sut": 1.0}, opening=opening)
    results = [seen for _, seen in scene.observed(scene.onlooker(), 10.0)]
    assert [count_of(seen.path) for seen in results] == list(dict.fromkeys(opening))[: len(results)]
    assert count_of(results[-1].path) == 8
    assert len(scene.asked) == 20 + 2 + opening.index(8)


def test_what_is_in_force_is_read_once_and_with_the_first_proof() -> None:
    scene = MonitorContext({"sut": 1.0}, opening=(5, 8))
    (first_s, first), (then_s, then) = scene.observed(scene.onlooker(), 10.0)
    assert [first_s, then_s] == pytest.approx([1.0, 1.5])
    assert scene.read == ["client", "sut"]
    assert (first.parity, first.of_nodes) == (then.parity, then.of_nodes)


def test_connections_that_came_before_the_client_ended_are_told_at_the_end() -> None:
    scene = MonitorContext({"sut-1": 0.5, "sut-2": 99.0}, opening=(5, 8))
    onlooker = scene.onlooker()
    ((_, late),) = scene.observed(onlooker, EAGER_S + 0.5)
    assert count_of(late.paths["sut-1"]) == 8
    scene.connected_s["sut-2"] = 0.0
    ((_, seen),) = scene.observed(onlooker, EAGER_S + 1.1)
    assert seen.paths["sut-2"] is not None
    assert onlooker.look(last=True) is None


def test_a_path_into_a_virtual_machine_is_looked_at_once() -> None:
    scene = MonitorContext({"sut": 1.0}, opening=(5, 8), guest=object())
    ((at_s, seen),) = scene.observed(scene.onlooker(), 10.0)
    assert at_s == pytest.approx(1.0)
    assert seen.path == NetworkPath(Hop.LOOPBACK, connections=5)


def test_a_client_that_ends_between_two_looks_keeps_the_path_of_the_first() -> None:
    scene = MonitorContext({"sut": 0.95})
    onlooker = scene.onlooker()
    ((_, seen),) = scene.observed(onlooker, 1.0)
    assert seen.path == NetworkPath(Hop.LOOPBACK, connections=8)
    scene.connected_s["sut"] = 99.0
    assert onlooker.look(last=True) is None


def test_connections_to_all_nodes_are_waited_for() -> None:
    scene = MonitorContext({"sut-1": 0.5, "sut-2": 2.0, "sut-3": 1.0})
    ((at_s, seen),) = scene.observed(scene.onlooker(), 10.0)
    assert at_s == pytest.approx(2.0)
    assert list(seen.paths) == list(seen.of_nodes) == ["sut-1", "sut-2", "sut-3"]
    assert seen.parity.sut == around("sut-1")


def test_a_client_that_ends_before_it_connects_is_told_of_all_the_same() -> None:
    scene = MonitorContext({"sut": 99.0})
    onlooker = scene.onlooker()
    assert scene.observed(onlooker, 1.0) == []
    seen = onlooker.look(last=True)
    assert seen is not None
    assert (seen.path, seen.parity.sut) == (None, around("sut"))
    assert onlooker.look(last=True) is None


def test_connections_that_cannot_be_matched_at_first_are_looked_at_again() -> None:
    scene = MonitorContext({"sut": 1.0}, matched_s=3.0)
    ((at_s, seen),) = scene.observed(scene.onlooker(), 10.0)
    assert at_s == pytest.approx(3.0)
    assert seen.path == NetworkPath(Hop.LOOPBACK, connections=8)


def test_connections_that_were_never_matched_are_told_of_at_the_end() -> None:
    scene = MonitorContext({"sut": 1.0}, matched_s=99.0)
    onlooker = scene.onlooker()
    assert scene.observed(onlooker, 3.0) == []
    scene.connected_s["sut"] = 99.0
    seen = onlooker.look(last=True)
    assert seen is not None
    assert seen.path == NetworkPath(connections=2)


def test_sockets_that_cannot_be_read_are_a_notice_and_not_read_again() -> None:
    scene = MonitorContext({"sut": -1.0})
    ((_, seen),) = scene.observed(scene.onlooker(), 10.0)
    assert seen.notices == ("the network path could not be read: sockets cannot be read",)
    assert scene.asked == ["sut"]


def test_what_is_known_is_not_looked_for_again() -> None:
    scene = MonitorContext({"sut": 0.0})
    assert scene.observed(scene.onlooker(known=True), 10.0) == []
    assert scene.asked == []


def test_as_many_connections_as_the_client_opens_are_looked_for_as_long_as_it_lasts() -> None:
    scene = MonitorContext({"sut": 1.0}, opening=(2, 2, 2, 2, 4))
    results = scene.observed(scene.onlooker(opens=4), 60.0)
    assert [count_of(seen.path) for _, seen in results] == [2, 4]
    assert [at_s for at_s, _ in results] == pytest.approx([1.0, 8.5])
    assert len(scene.asked) == 20 + 5


def test_a_path_is_looked_at_once_where_all_that_the_client_opens_are_seen() -> None:
    scene = MonitorContext({"sut": 1.0})
    ((at_s, seen),) = scene.observed(scene.onlooker(opens=8), 10.0)
    assert at_s == pytest.approx(1.0)
    assert seen.path == NetworkPath(Hop.LOOPBACK, connections=8)
    assert len(scene.asked) == 20 + 1


def test_an_arm_that_opens_slowly_costs_few_looks_more_than_one_that_opens_at_once() -> None:
    scene = MonitorContext({"sut": 0.0}, opening=(1, 2, 3, 4, 5, 6))
    scene.observed(scene.onlooker(opens=9), EAGER_S)
    assert len(scene.asked) == 4


def test_connections_that_never_came_are_looked_for_ever_more_rarely() -> None:
    scene = MonitorContext({"sut": 0.0})
    onlooker = scene.onlooker(opens=9)
    ((_, seen),) = scene.observed(onlooker, 300.0)
    assert len(scene.asked) == 10  # after 0.5, 1, 2, 4 s and so on
    assert onlooker.look(last=True) is None
    assert some_unseen(seen.path, 9) == (
        "8 of the client's 9 connections were seen; the path of the others is unknown"
    )


@pytest.mark.parametrize("opens", [None, 7, 8])
def test_no_connection_is_missed_where_as_many_came_or_nobody_knows_how_many(opens: int | None) -> None:
    assert some_unseen(NetworkPath(Hop.LOOPBACK, connections=8), opens) is None


def test_connections_shared_out_among_nodes_or_seen_through_a_machine_are_not_counted_on() -> None:
    assert MonitorContext({"sut": 0.0}).expected(8) == 8
    assert MonitorContext({"sut-1": 0.0, "sut-2": 0.0}).expected(8) is None
    assert MonitorContext({"sut": 0.0}, guest=object()).expected(8) is None
