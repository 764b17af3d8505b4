"""The host contract on this machine and through an agent, which a command starts here without any SSH."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.sites.host_contract import HostContract

from tare.sites import Host
from tare.sites.local import LocalHost
from tare.sites.ssh.dialing import CommandDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Link


class TestLocalHost(HostContract):
    @pytest.fixture
    def host(self) -> Host:
        return LocalHost()


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Link]:
    home = tmp_path_factory.mktemp("home")
    words = ("connect", "--session", "contract", "--home", str(home))
    link = Link("far", CommandDialer((str(agent_program()), *words)))
    yield link
    link.close()
    assert [path.name for path in (home / "agent").iterdir()] == ["lock"]


class TestThroughTheAgent(HostContract):
    @pytest.fixture
    def host(self, link: Link) -> Host:
        return SshHost(link)
