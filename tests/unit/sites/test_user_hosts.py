"""A host over SSH whose user is not root: what is its containers' goes through that host's sidecar, by any way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from requests.exceptions import ReadTimeout
from tests.unit.sites.host_contract import HostContract
from tests.unit.sites.test_sidecar import Served

from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.sites import Host, NewFile
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.sidecar import container
from tare.sites.sidecar.container import Sidecar
from tare.sites.sidecar.host import SshUserHost
from tare.sites.ssh.dialing import CommandDialer, agent_program
from tare.sites.ssh.link import Link


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Link]:
    home = tmp_path_factory.mktemp("home")
    words = ("connect", "--session", "contract", "--home", str(home))
    link = Link("far", CommandDialer((str(agent_program()), *words)))
    yield link
    link.close()


@pytest.fixture
def sidecar() -> Iterator[Served]:
    made = Served()
    yield made
    assert made.end() == 0


class TestSshUserHost(HostContract):
    """All that lies below the tests' directory is reached by the sidecar."""

    @pytest.fixture
    def host(self, link: Link, sidecar: Served, tmp_path: Path) -> Host:
        host = SshUserHost(link, sidecar, Layout(Path("/nowhere")))
        host.calls.places = (str(tmp_path),)
        return host


def test_several_files_go_together_but_for_those_that_the_sidecar_writes(
    link: Link, sidecar: Served, tmp_path: Path
) -> None:
    layout = Layout(tmp_path / "home")
    layout.work.mkdir(parents=True)
    host = SshUserHost(link, sidecar, layout)
    paths = [f"{layout.work}/a", f"{tmp_path}/b"]
    host.put_all([NewFile(path, path.encode()) for path in paths])
    assert [Path(path).read_text() for path in paths] == paths
    assert [words["path"] for words in sidecar.asked] == paths[:1]
    host.read(f"/proc/{os.getpid()}/status")
    assert len(sidecar.asked) == 1


class Lines:
    """In the place of the engine's containers: what each is asked, and that the first is lost."""

    def __init__(self, *faults: Exception | None) -> None:
        self.faults = list(faults)
        self.made = 0
        self.asked = 0

    def ask(self, request: bytes, timeout_s: float) -> tuple[dict[str, Any], bytes]:
        del request, timeout_s
        self.asked += 1
        if (fault := self.faults.pop(0)) is not None:
            raise fault
        return {}, b"answer"

    def close(self) -> None:
        pass


def sidecar_of(
    lines: Lines, monkeypatch: pytest.MonkeyPatch, *, back: str | None = None, far: bool = True
) -> Sidecar:
    def made(_: Sidecar) -> Any:
        lines.made += 1
        return lines

    monkeypatch.setattr(Sidecar, "_made", made)
    monkeypatch.setattr(container, "_PAUSE_S", 0.0)
    nobody: Any = None
    return Sidecar(FakeHost("far"), lambda: nobody, Path("/srv/tare"), nobody, back=(lambda: back) if far else None)


class Case:
    """`faults`: of the questions, one after the other. `back`: why the host does not come back."""

    def __init__(self, *faults: Exception | None, far: bool = True, back: str | None = None) -> None:
        self.faults, self.far, self.back = faults, far, back


READ = {"verb": "read", "path": "/x"}


def test_over_a_connection_that_came_back_another_sidecar_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines(None, RunFailed("it ended"), OSError("not yet"), None)
    sidecar = sidecar_of(lines, monkeypatch)
    for _ in range(2):
        assert sidecar.ask(READ, timeout_s=1)[1] == b"answer"
    assert (lines.made, lines.asked) == (3, 4)


@pytest.mark.parametrize(
    ("case", "again", "error"),
    [
        (Case(None, RunFailed("it ended")), False, "it ended"),
        (Case(None, RunFailed("it ended"), far=False), True, "it ended"),
        (Case(None, OSError("gone"), back="for good"), True, "far is lost: gone"),
        (Case(RunFailed("setpriv is missing")), True, "setpriv is missing"),
        (Case(None, TimeoutError()), True, "far did not answer in time"),
        (Case(ReadTimeout("read timed out")), True, "read timed out"),
    ],
    ids=["not to be done twice", "here", "lost for good", "one that never answered", "too late", "a hung engine"],
)
def test_no_other_is_asked(monkeypatch: pytest.MonkeyPatch, case: Case, again: bool, error: str) -> None:
    lines = Lines(*case.faults)
    sidecar = sidecar_of(lines, monkeypatch, back=case.back, far=case.far)
    for _ in case.faults[1:]:
        sidecar.ask(READ, timeout_s=1, again=again)
    with pytest.raises((RunFailed, TimedOut, EnvironmentLacks), match=error):
        sidecar.ask(READ, timeout_s=1, again=again)
    assert lines.asked == len(case.faults)


def test_an_engine_s_refusal_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from docker.errors import APIError

    lines = Lines(APIError("400", explanation="no such mount"))
    with pytest.raises(EnvironmentLacks, match=r"the engine on far gives no container .*: no such mount"):
        sidecar_of(lines, monkeypatch).ask(READ, timeout_s=1)
    assert lines.asked == 1
