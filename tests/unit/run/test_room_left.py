"""What is added to the reason of a run that failed while its disk was full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from tare.databases import Secrets, ServerPlan
from tare.errors import RunFailed, TimedOut
from tare.run.bench import Bench
from tare.run.nodes import Node, nodes_of
from tare.run.room_left import telling_of_full_disks
from tare.run.sut import Sut
from tare.sites import Completed

PLAN = ServerPlan("/data", "/run/tare", "0.0.0.0", 28042, {}, Secrets("u", "p"))


@dataclass
class Answering:
    """A server in whose root `stat -f` prints that much; an exception is raised."""

    said: str | Exception
    said_outside: str = ""
    node: Node = nodes_of(1)[0]
    lives: bool = True
    plan: ServerPlan = PLAN

    def inside(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        assert argv == ("stat", "-f", "-c", "%a %b %S", "/data")
        if isinstance(self.said, Exception):
            raise self.said
        return Completed(tuple(argv), 0, self.said.encode())

    @property
    def host(self) -> Answering:
        """Its own machine."""
        return self

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        assert argv == ("stat", "-f", "-c", "%a %b %S", "/srv/data")
        return Completed(tuple(argv), 0, self.said_outside.encode())


FULL, ROOMY = "0 125000 4096\n", "20000 125000 4096\n"


def reason(*servers: Answering, error: RunFailed | None = None) -> RunFailed:
    sut = cast("Sut", SimpleNamespace(servers=servers)) if servers else None
    bench = cast("Bench", SimpleNamespace(housed=lambda _: SimpleNamespace(path="/srv/data")))
    with pytest.raises(RunFailed) as raised, telling_of_full_disks(bench, sut):
        raise error or RunFailed("no host answers", hint="see the log")
    return raised.value


def test_a_disk_that_is_full_is_told_beside_what_the_client_said() -> None:
    told = reason(Answering(FULL))
    assert told.what == "no host answers; the file system of its data has 0 of 488 MiB left"
    assert told.hint == "see the log"


def test_a_server_that_has_ended_is_asked_for_at_its_host() -> None:
    told = reason(Answering("", FULL, lives=False))
    assert told.what == "no host answers; the file system of its data has 0 of 488 MiB left"


def test_each_node_is_asked() -> None:
    one, two, three = nodes_of(3)
    told = reason(Answering(ROOMY, node=one), Answering(FULL, node=two), Answering(ROOMY, node=three))
    assert told.what == "no host answers; the file system of sut-2's data has 0 of 488 MiB left"


@pytest.mark.parametrize(
    "server",
    [
        Answering(ROOMY),
        Answering(""),
        Answering("stat: not found"),
        Answering(TimedOut("too long")),
        Answering(FULL, ROOMY, lives=False),
    ],
)
def test_nothing_is_added_where_there_is_room_or_no_answer(server: Answering) -> None:
    error = RunFailed("no host answers")
    assert reason(server, error=error) is error


def test_nothing_is_asked_where_there_is_no_server() -> None:
    assert reason().what == "no host answers"
