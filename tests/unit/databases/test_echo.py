"""The echo server: its command, and the reading of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from tare.databases import Secrets, ServerPlan
from tare.databases.echo import Echo
from tare.errors import RunFailed, StudyError
from tare.sites import Completed

PLAN = ServerPlan(
    data_dir="/var/lib/echo",
    run_dir="/run/tare",
    listen="0.0.0.0",
    port=33061,
    settings={},
    secrets=Secrets(user="tare", password="0123456789abcdef"),
)


@dataclass
class Inside:
    """Gives one answer, and keeps what was asked."""

    text: str = ""
    code: int = 0
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], timeout_s: float, stdin: bytes) -> Completed:
        self.asked.append(tuple(argv))
        return Completed((), self.code, self.text.encode(), b"")


def test_the_password_is_in_a_file_and_in_no_argument() -> None:
    command = Echo().serve(PLAN)
    assert command.argv == (
        "tare-load", "echo", "--address=0.0.0.0:33061", "--password-file=/run/tare/echo.secret",
    )  # fmt: skip
    assert command.files == {"echo.secret": "0123456789abcdef\n"}


def test_a_server_that_listens_everywhere_is_asked_on_loopback() -> None:
    inside = Inside("PONG\n")
    assert Echo().ready(PLAN, inside)
    assert "--address=127.0.0.1:33061" in inside.asked[0]
    assert inside.asked[0][-1] == "PING"


@pytest.mark.parametrize("inside", [Inside("PONG\n", code=3), Inside("", code=0), Inside("OK\n")])
def test_it_is_not_ready_before_it_answers(inside: Inside) -> None:
    assert not Echo().ready(PLAN, inside)


def test_its_version_is_what_is_in_force() -> None:
    text = "tare_version:0.1.0\r\nthreads:1\r\n"
    assert Echo().effective(PLAN, Inside(text)) == {"tare_version": "0.1.0", "threads": "1"}


def test_another_server_at_its_port_is_found_out() -> None:
    with pytest.raises(RunFailed, match="does not report its version"):
        Echo().effective(PLAN, Inside("redis_version:7.0.15\r\n"))


def test_a_shutdown_that_is_refused_fails_the_run() -> None:
    Echo().shutdown(PLAN, Inside("OK\n"))
    with pytest.raises(RunFailed, match="shut it down"):
        Echo().shutdown(PLAN, Inside("", code=3))


def test_it_takes_no_settings() -> None:
    with pytest.raises(StudyError, match="no setting 'io-threads'"):
        Echo().serve(replace(PLAN, settings={"io-threads": 2}))
