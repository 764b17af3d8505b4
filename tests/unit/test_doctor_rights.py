"""What a user who is not root lacks on a host over SSH, each with the command that gives it to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tare.doctor import Line, Verdict
from tare.doctor.rights import rights_lines, socket_line
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.file import SshSpec

SPEC = SshSpec(ssh="bench@db")
LINE = "bench ALL=(root) NOPASSWD: /home/bench/.local/share/tare/agent/tare-agent-*"


def host(answers: Mapping[str, str | None]) -> FakeHost:
    """Answers by a word of the command line; `None`: it fails."""

    def answered(argv: Sequence[str], stdin: bytes) -> Completed:
        del stdin
        line = " ".join(argv)
        first = next((text for word, text in answers.items() if word in line), None)
        return Completed(tuple(argv), 1) if first is None else Completed(tuple(argv), 0, first.encode())

    return FakeHost("db", {(program,): answered for program in ("id", "sh", "sudo", "stat")})


def far(answers: Mapping[str, str | None], spec: SshSpec = SPEC) -> Line:
    return next(rights_lines(host(answers), spec))


def test_root_lacks_nothing() -> None:
    assert far({"id -u": "0"}).verdict is Verdict.OK
    assert far({"id -u": "0"}, SPEC.model_copy(update={"sudo": True})).found == "root by sudo"


def test_who_needs_a_password_is_given_the_line_for_sudoers() -> None:
    line = far({"NOPASSWD": LINE, "id -un": "bench", "id -u": "1000"})
    assert line.verdict is Verdict.MISSING
    assert line.found == "bench (user 1000): studies of container arms work"
    assert f"echo '{LINE}' >/etc/sudoers.d/tare" in (line.advice or "")


def test_who_needs_none_is_told_the_key_of_the_file_of_sites() -> None:
    line = far({"sudo -n -l": "/home/bench/agent", "NOPASSWD": LINE, "id -un": "bench", "id -u": "1000"})
    assert "write `sudo: true` for this host" in (line.advice or "")
    assert "/etc/sudoers.d" not in (line.advice or "")


def test_a_socket_that_the_user_may_not_use_names_its_group() -> None:
    line = socket_line(host({"test -S": "so", "stat": "root docker", "id -un": "bench"}), SPEC)
    assert line is not None
    assert line.found == "/var/run/docker.sock is root's and the group docker's, and bench may not use it"
    assert "usermod -aG docker bench" in (line.advice or "")
    assert socket_line(host({}), SPEC) is None
    lines = list(
        rights_lines(host({"test -S": "so", "stat": "root docker", "id -un": "bench", "id -u": "1000"}), SPEC)
    )
    assert lines[1:] == [line]


@pytest.mark.parametrize(
    ("user", "verdict", "words"),
    [
        ("0", Verdict.OK, "root"),
        ("1000", Verdict.MISSING, "bench (user 1000): studies of container arms work"),
        (None, Verdict.CANNOT, "cannot be determined"),
    ],
)
def test_the_rights_of_who_runs_tare_here_decide_which_arms_work(
    user: str | None, verdict: Verdict, words: str
) -> None:
    (line,) = rights_lines(host({"id -un": "bench", "id -u": user}), None)
    assert (line.verdict, line.found) == (verdict, words)
    assert verdict is not Verdict.MISSING or "bare arms" in (line.advice or "")
