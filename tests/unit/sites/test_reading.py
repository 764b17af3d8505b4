"""What a failed program says, and what is running, as tare reads both."""

from __future__ import annotations

import pytest

from tare.errors import RunFailed
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.process import named
from tare.sites.reading import last_line

PANIC = b"""thread 'main' panicked at crates/probe/src/sources.rs:41:10:
no clock of this kernel
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""


@pytest.mark.parametrize(
    ("stdout", "stderr", "reason"),
    [
        (b"", PANIC, "no clock of this kernel"),
        (b"first\nlast\n\n", b"\n", "last"),
        (b"output\n", b"warning\nrefused\n", "refused"),
        (b"", b"", "it printed nothing"),
    ],
)
def test_the_reason_is_the_last_line_that_gives_one(stdout: bytes, stderr: bytes, reason: str) -> None:
    assert last_line(Completed(("tare-probe",), 101, stdout, stderr)) == reason


def test_processes_are_found_by_their_exact_names() -> None:
    host = FakeHost(answers={("pgrep",): Completed((), 0, b"7 docker-proxy\n9 passt.avx2\n")})
    assert named(host, ["docker-proxy", "passt.avx2"]) == {7: "docker-proxy", 9: "passt.avx2"}
    assert host.ran() == [("pgrep", "-l", "-x", r"docker\-proxy|passt\.avx2")]


def test_no_such_process_is_no_failure_and_a_refusal_is_one() -> None:
    assert named(FakeHost(answers={("pgrep",): Completed((), 1)}), ["conmon"]) == {}
    refuses = FakeHost(answers={("pgrep",): Completed((), 2, b"", b"pgrep: unrecognized option\n")})
    with pytest.raises(RunFailed, match="pgrep ended with 2 on fake: pgrep: unrecognized option"):
        named(refuses, ["conmon"])
