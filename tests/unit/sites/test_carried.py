"""tare's own programs are taken along to a host over SSH; every other program is the host's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tare.sites.binaries import PROBE, find
from tare.sites.local import LocalHost
from tare.sites.ssh.carried import Carried
from tare.sites.ssh.dialing import CommandDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    words = ("connect", "--session", "carried", "--home", str(tmp_path / "home"))
    link = Link("far", CommandDialer((str(agent_program()), *words)))
    yield link
    link.close()


def test_the_probe_is_copied_once_and_kept_for_clean(link: Link, tmp_path: Path) -> None:
    here = find(LocalHost(), PROBE)
    assert here is not None
    assert find(SshHost(link), PROBE) == here
    (copied,) = (tmp_path / "home" / "programs").glob("*/*")
    assert copied.name == PROBE.name
    assert copied.read_bytes() == Path(here).read_bytes()
    before = copied.stat().st_mtime_ns
    assert Carried(link).path_there(here) == str(copied)
    assert copied.stat().st_mtime_ns == before
    (entry,) = AgentLedger(link).entries()
    assert (entry.ident, entry.keep) == (str(tmp_path / "home" / "programs"), True)


def test_other_programs_are_the_host_s_own(link: Link, tmp_path: Path) -> None:
    for program in ("python3", "/bin/sh", "tare-probe", f"{tmp_path}/tare-probe"):
        assert Carried(link).path_there(program) == program
    assert not (tmp_path / "home" / "programs").exists()
