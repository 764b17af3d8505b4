"""A host for tests of deployments, storage and monitors: this machine as such, or this machine as a host over SSH.

The second is reached through a real sshd on loopback: programs, files and ledger by the agent, the engine by a
forwarded socket. Being this machine too, it shows the tests what they look at. `LocalHost` refuses to be used
meanwhile, so that nothing under test goes past its host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.hosts.sshd import running

from tare.sites import Host
from tare.sites.engine import connect
from tare.sites.ledger import Ledger
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.ssh.dialing import SshDialer, agent_program
from tare.sites.ssh.engine import ForwardedEngine
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link

KINDS = ("local", pytest.param("ssh", marks=pytest.mark.slow))
LOCAL_ALONE = frozenset({"vm", "boxed", "make", "podman", "kill_a_tare", "killed_script"})
"""Fixtures of what no host over SSH has: machines (`refuse_between`), an engine or a tare of the tests' own."""


@dataclass(frozen=True)
class Reached:
    """A host as tare reaches it. `own_ledger`: the one on it; `None`: each test makes its own."""

    host: Host
    engine: DockerClient
    own_ledger: Ledger | None = None

    def ledger(self, directory: Path) -> Ledger:
        """The host's own, or a new one."""
        return self.own_ledger or SqliteLedger(directory / "ledger.sqlite")


@contextmanager
def over_ssh(directory: Path) -> Iterator[Reached]:
    """While this lasts; keys, logs and the host's TARE_HOME lie in the directory."""
    (directory / "sshd").mkdir()
    with ExitStack() as stack:
        sshd = stack.enter_context(running(directory / "sshd"))
        spec = sshd.spec(home=str(directory / "home"))
        link = stack.enter_context(closing(Link("far", SshDialer(spec, "tests", agent_program()))))
        forwarded = stack.enter_context(closing(ForwardedEngine(spec)))
        engine = stack.enter_context(closing(connect(forwarded.url, timeout_s=60)))
        yield Reached(SshHost(link), engine, AgentLedger(link))


def refuse_to_go_past(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever turns to the machine that tare runs on fails, but for what is asked of tare's own process."""
    if isinstance(host, LocalHost):
        return
    read = LocalHost.read

    def of_tare_itself(here: LocalHost, path: str) -> bytes | None:
        if not path.startswith((f"/proc/{os.getpid()}/", "/proc/sys/kernel/random/boot_id")):
            pytest.fail(f"{path} is read past the host over SSH, on the machine that tare runs on")
        return read(here, path)

    def refused(*words: object, **_: object) -> None:
        pytest.fail(f"{words[1:2]} goes past the host over SSH, to the machine that tare runs on")

    for method in ("run", "start", "put", "get"):
        monkeypatch.setattr(LocalHost, method, refused)
    monkeypatch.setattr(LocalHost, "read", of_tare_itself)


def noted(ledger: Ledger) -> list[str]:
    """What is to be removed; programs of tare's that a host over SSH was given are kept."""
    return [f"{entry.kind} {entry.ident}" for entry in ledger.entries() if not entry.keep]
