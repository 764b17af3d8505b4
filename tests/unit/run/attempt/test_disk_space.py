"""What is added to the reason of a run that failed while its disk was full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from tare.databases import Secrets, ServerPlan
from tare.deployments import Guest
from tare.errors import RunFailed, TimedOut
from tare.run.attempt.context import RunContext
from tare.run.attempt.disk_space import with_free_space
from tare.run.attempt.server import Node, Sut, nodes_of
from tare.sites import Completed

PLAN = ServerPlan("/data", "/run/tare", "0.0.0.0", 28042, {}, Secrets("u", "p"))


GUEST = Guest("/run/t/line", "/run/t/line.py", 40, "/run/t/status")


@dataclass
class Answering:
    """A server in whose root `stat -f` prints that much; an exception is raised. `status`: of its machine."""

    said: str | Exception
    said_outside: str = ""
    node: Node = nodes_of(1)[0]
    lives: bool = True
    plan: ServerPlan = PLAN
    guest: Guest | None = None
    status: bytes | None = None

    def inside(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        assert argv == ("stat", "-f", "-c", "%a %b %S", "/data")
        if isinstance(self.said, Exception):
            raise self.said
        return Completed(tuple(argv), 0, self.said.encode())

    @property
    def host(self) -> Answering:
        """Its own machine."""
        return self

    @property
    def instance(self) -> SimpleNamespace:
        """Nothing of it matters but the machine."""
        return SimpleNamespace(guest=self.guest)

    def read(self, path: str) -> bytes | None:
        assert path == GUEST.status
        return self.status

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        assert argv == ("stat", "-f", "-c", "%a %b %S", "/srv/data")
        return Completed(tuple(argv), 0, self.said_outside.encode())


FULL, ROOMY = "0 125000 4096\n", "20000 125000 4096\n"


@dataclass
class Files:
    """A work directory on a host where `stat -f` prints that much for the run's files."""

    said: str
    raw: str = "/work/raw"
    name: str = "db"

    @property
    def host(self) -> Files:
        """Its own host."""
        return self

    def run(self, argv: Sequence[str], timeout_s: float) -> Completed:
        assert argv == ("stat", "-f", "-c", "%a %b %S", "/work/raw")
        return Completed(tuple(argv), 0, self.said.encode())


def reason(
    *servers: Answering, error: RunFailed | None = None, files: str = ROOMY, clients: Files | None = None
) -> RunFailed:
    sut = cast("Sut", SimpleNamespace(servers=servers)) if servers else None
    workdir = Files(files)
    told = SimpleNamespace(
        data_mount_of=lambda _: SimpleNamespace(path="/srv/data"),
        workdir=workdir,
        workdir_for_client=clients or workdir,
    )
    context = cast("RunContext", told)
    with pytest.raises(RunFailed) as raised, with_free_space(context, sut):
        raise error or RunFailed("no host answers", hint="see the log")
    return raised.value


def test_a_disk_that_is_full_is_told_beside_what_the_client_said() -> None:
    failure = reason(Answering(FULL))
    assert failure.what == "no host answers; the file system of its data has 0 of 488 MiB left"
    assert failure.hint == "see the log"


def test_a_server_that_has_ended_is_asked_for_at_its_host() -> None:
    failure = reason(Answering("", FULL, lives=False))
    assert failure.what == "no host answers; the file system of its data has 0 of 488 MiB left"


def test_each_node_is_asked() -> None:
    one, two, three = nodes_of(3)
    failure = reason(Answering(ROOMY, node=one), Answering(FULL, node=two), Answering(ROOMY, node=three))
    assert failure.what == "no host answers; the file system of sut-2's data has 0 of 488 MiB left"


END = b'{"code": 1, "oom_kills": 0, "rooms": {"/data": {"free_bytes": 1048576, "bytes": 419430400}}}\n'


def test_a_server_in_a_machine_is_asked_inside_and_its_end_tells_of_its_disk() -> None:
    text = "no host answers; the file system of its data has 0 of 488 MiB left"
    assert reason(Answering(FULL, ROOMY, guest=GUEST)).what == text
    ended = Answering("", ROOMY, lives=False, guest=GUEST, status=END)
    assert reason(ended).what == "no host answers; the file system of its data has 1 of 400 MiB left"


def test_what_lies_below_a_machines_disk_may_be_full_by_itself() -> None:
    text = "no host answers; the file system below the disk of its data has 0 of 488 MiB left"
    assert reason(Answering(ROOMY, FULL, guest=GUEST)).what == text
    assert reason(Answering("", FULL, lives=False, guest=GUEST, status=b"")).what == text


@pytest.mark.parametrize(
    "server",
    [
        Answering(ROOMY),
        Answering(ROOMY, ROOMY, guest=GUEST),
        Answering("", ROOMY, lives=False, guest=GUEST, status=END.replace(b"1048576", b"104857600")),
        Answering(""),
        Answering("stat: not found"),
        Answering(TimedOut("too long")),
        Answering(FULL, ROOMY, lives=False),
    ],
)
def test_nothing_is_added_where_there_is_room_or_no_answer(server: Answering) -> None:
    error = RunFailed("no host answers")
    assert reason(server, error=error) is error


def test_no_server_is_asked_where_there_is_none() -> None:
    assert reason().what == "no host answers"


def test_a_full_disk_below_the_runs_own_files_is_told_once_a_host() -> None:
    """A monitor that cannot write its samples cannot write its reason either."""
    text = "the file system of the run's files on {} has no space left"
    assert reason(Answering(ROOMY), files=FULL).what == f"no host answers; {text.format('db')}"
    assert reason(files=FULL).what == f"no host answers; {text.format('db')}"
    far = Files(FULL, name="load")
    assert reason(Answering(ROOMY), clients=far).what == f"no host answers; {text.format('load')}"
    assert "run's files" not in reason(Answering(FULL), files=FULL).what
