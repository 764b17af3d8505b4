"""A user's host: what is its containers' goes through the sidecar, all else is the user's."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.sites.host_contract import HostContract

from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.record.engine_facts import EngineFacts
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.sidecar import server
from tare.sites.sidecar.host import UserHost, why_no_sidecar


class Served:
    """A sidecar without an engine: the server's own process, with the tests' rights. Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.closed = 0
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", Path(server.__file__).read_text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(
        self, words: Mapping[str, Any], content: bytes = b"", *, timeout_s: float, again: bool = True
    ) -> tuple[dict[str, Any], bytes]:
        del timeout_s, again
        self.asked.append(words)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(server.message(dict(words), content))
        self._process.stdin.flush()
        answer = server.receive(cast("Any", self._process.stdout))
        assert answer is not None
        return answer

    def close(self) -> None:
        self.closed += 1

    def end(self) -> int:
        """How the server ends when nobody can ask any more."""
        self._process.communicate(timeout=60)
        return self._process.returncode


@pytest.fixture
def sidecar() -> Iterator[Served]:
    made = Served()
    yield made
    assert made.end() == 0


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "home")
    made.work.mkdir(parents=True)
    return made


@pytest.fixture
def users(sidecar: Served, layout: Layout) -> UserHost:
    return UserHost(sidecar, layout)


class TestUserHost(HostContract):
    """All that lies below the tests' directory is reached by the sidecar."""

    @pytest.fixture
    def host(self, sidecar: Served, tmp_path: Path) -> Host:
        host = UserHost(sidecar, Layout(Path("/nowhere")))
        host.calls.places = (str(tmp_path),)
        return host


def test_files_of_runs_and_others_processes_go_by_hand_and_nothing_else(
    users: UserHost, sidecar: Served, layout: Layout
) -> None:
    work, pid = str(layout.work), os.getpid()
    users.run(["install", "-d", f"{work}/run"], timeout_s=60)
    users.run(["readlink", f"/proc/{pid}/ns/net"], timeout_s=60)
    users.run(["xargs", "-0", "ls", "-d"], timeout_s=60, stdin=work.encode() + b"\0")
    assert [words["argv"][0] for words in sidecar.asked] == ["install", "readlink", "xargs"]
    users.run(["ls", str(layout.home)], timeout_s=60)
    users.run(["sh", "-c", "true", work], timeout_s=60)
    users.run(["readlink", "/proc/self/ns/net"], timeout_s=60)
    users.read(f"/proc/{pid}/status")
    assert len(sidecar.asked) == 3


def test_what_the_user_may_read_of_a_process_is_not_asked_of_the_sidecar(users: UserHost, sidecar: Served) -> None:
    assert users.read(f"/proc/{os.getpid()}/environ")
    assert sidecar.asked == []
    assert users.read("/proc/999999999/environ") is None


def test_a_file_is_written_whole_with_its_mode_and_comes_back(
    users: UserHost, layout: Layout, tmp_path: Path
) -> None:
    place = layout.work / "file"
    users.put(b"content", str(place), mode=0o600)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [path.name for path in layout.work.iterdir()] == ["file"]
    assert users.read(str(place)) == b"content"
    users.get(str(place), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"content"
    with pytest.raises(RunFailed, match="cannot be written on local: No such file"):
        users.put(b"x", f"{layout.work}/none/file")


def test_a_directory_comes_with_its_files_and_links_and_no_pipe_is_waited_for(
    users: UserHost, layout: Layout, tmp_path: Path
) -> None:
    (layout.work / "raw" / "deep").mkdir(parents=True)
    (layout.work / "raw" / "deep" / "file").write_bytes(b"x")
    (layout.work / "raw" / "link").symlink_to("/etc/shadow")
    os.mkfifo(layout.work / "pipe")
    users.get(f"{layout.work}/raw", tmp_path / "copy")
    assert (tmp_path / "copy" / "deep" / "file").read_bytes() == b"x"
    assert (tmp_path / "copy" / "link").is_symlink()
    for refused in ("raw/link", "pipe"):
        with pytest.raises(RunFailed, match="cannot be copied from local"):
            users.get(f"{layout.work}/{refused}", tmp_path / "refused")
        with pytest.raises(RunFailed, match="cannot be read on local"):
            users.read(f"{layout.work}/{refused}")


def test_a_long_file_comes_in_parts(
    users: UserHost, sidecar: Served, layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.sites.sidecar.calls._PART", 4)
    (layout.work / "trace").write_bytes(b"0123456789")
    users.get(f"{layout.work}/trace", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"0123456789"
    assert [words["offset"] for words in sidecar.asked if words["verb"] == "part"] == [0, 4, 8]
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy"]


def test_a_link_in_a_directory_s_place_leads_nowhere(layout: Layout) -> None:
    """Between listing and reading, a container may have put it there."""
    (layout.work / "raw").mkdir()
    (layout.work / "raw" / "deep").symlink_to("/etc")
    asked = {"path": f"{layout.work}/raw", "below": "deep/passwd", "offset": 0, "limit": 100}
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        server.part(asked, b"")
    with pytest.raises(OSError, match="it is no regular file"):
        server.part({**asked, "below": ""}, b"")


def test_what_tracks_connections_is_read_by_process_1(
    users: UserHost, sidecar: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sidecar has no network of its own; where the user may read the host's, it is not asked."""

    def refused(path: str) -> bytes | None:
        raise RunFailed(f"{path} cannot be read on local: Permission denied")

    assert users.calls.read("/proc/net/nf_conntrack", lambda _: b"seen") == b"seen"
    assert sidecar.asked == []
    users.calls.read("/proc/net/nf_conntrack", refused)
    assert [words["path"] for words in sidecar.asked] == ["/proc/1/net/nf_conntrack"]
    with pytest.raises(RunFailed, match="Permission denied"):
        users.calls.read("/etc/shadow", refused)


def test_the_host_s_own_namespace_is_that_of_process_1(users: UserHost, sidecar: Served) -> None:
    """The sidecar has others."""
    argv = ["readlink", "/proc/self/ns/net", f"/proc/{os.getpid()}/ns/net"]
    users.run(argv, timeout_s=60, check=False)
    assert sidecar.asked[0]["argv"] == [argv[0], "/proc/1/ns/net", argv[2]]


def test_a_program_that_takes_too_long_is_killed(users: UserHost, layout: Layout) -> None:
    with pytest.raises(TimedOut, match=r"did not end within 0\.3 s"):
        users.run(["xargs", "-0", "-I{}", "sleep", "600"], timeout_s=0.3, stdin=str(layout.work).encode())


def test_the_end_of_a_message_that_was_cut_short_is_no_message() -> None:
    whole = server.message({"verb": "read"}, b"abc")
    assert server.receive(io.BytesIO(whole)) == ({"verb": "read"}, b"abc")
    assert server.receive(io.BytesIO(whole[:9])) is None


class Refusing(Served):
    def ask(
        self, words: Mapping[str, Any], content: bytes = b"", *, timeout_s: float, again: bool = True
    ) -> tuple[dict[str, Any], bytes]:
        raise EnvironmentLacks("the engine gives no container", hint="run tare as root")


@pytest.mark.parametrize(
    ("rootless", "kind", "words"),
    [(True, Served, "it also runs as a user"), (False, Refusing, "gives no container"), (False, Served, None)],
)
def test_whether_there_is_a_hand_is_found_out_by_trying_and_it_does_not_stay(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, rootless: bool, kind: Callable[[], Served], words: str | None
) -> None:
    made = kind()
    monkeypatch.setattr("tare.sites.sidecar.host.engine_facts", lambda _: EngineFacts(engine_rootless=rootless))
    why = why_no_sidecar(UserHost(made, layout), cast("Any", object()))
    assert why is None if words is None else words in (why or "")
    assert made.closed == (0 if rootless else 1)
    made.end()
