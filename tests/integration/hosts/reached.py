"""A host for tests of deployments, storage and monitors: this machine as such, or this machine as a host over SSH.

The second is reached through a real sshd on loopback: programs, files and ledger by the agent, the engine by a
forwarded socket. Being this machine too, it shows the tests what they look at. `LocalHost` refuses to be used
meanwhile, so that nothing under test goes past its host.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.hosts.sshd import running

from tare.deployments import Task
from tare.deployments.sweep import sweep
from tare.sites import Host
from tare.sites.engine import connect
from tare.sites.engines import Engines
from tare.sites.file import SshSpec
from tare.sites.ledger import Ledger
from tare.sites.local import LocalHost
from tare.sites.marks import FILE
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.ssh.dialing import SshDialer, agent_program
from tare.sites.ssh.engine import ForwardedEngine
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link

KINDS = ("local", pytest.param("ssh", marks=pytest.mark.slow))
LEASE_S = 2.0
"""Of the agent of a tare that a test kills."""
LOCAL_ALONE = frozenset({"vm", "boxed", "make", "user", "containerd", "clean_containerd", "own_engine"})
"""Fixtures of what no host over SSH has: virtual machines (`refuse_between`), containers of containerd, an
engine of the test's own, and a rootless engine, which must be on the machine that tare runs on."""


@dataclass(frozen=True)
class Reached:
    """A host as tare reaches it. `own_ledger`: the one on it; `None`: each test makes its own. `spec`: over SSH.

    `here`: over SSH, the ledger of the machine that tare runs on.
    """

    host: Host
    engine: DockerClient
    own_ledger: Ledger | None = None
    spec: SshSpec | None = None
    here: Path | None = None

    def ledger(self, directory: Path) -> Ledger:
        """The host's own, or a new one."""
        if self.own_ledger is not None:
            return self.own_ledger
        (directory / FILE).write_text(str(directory.stat().st_ino))  # a home, though a test's files are in it too
        return SqliteLedger(directory / "ledger.sqlite")


@contextmanager
def over_ssh(directory: Path) -> Iterator[Reached]:
    """While this lasts; keys, logs and the host's TARE_HOME lie in the directory."""
    (directory / "sshd").mkdir()
    here = directory / "here.sqlite"
    with ExitStack() as stack:
        stack.callback(_sweep_here, SqliteLedger(here))
        sshd = stack.enter_context(running(directory / "sshd"))
        spec = sshd.spec(home=str(directory / "home"))
        link = stack.enter_context(closing(Link("far", SshDialer(spec, "tests", agent_program()))))
        forwarded = stack.enter_context(closing(ForwardedEngine(spec, SqliteLedger(here))))
        engine = stack.enter_context(closing(connect(forwarded.url, timeout_s=60)))
        yield Reached(SshHost(link), engine, AgentLedger(link), spec, here)


def _sweep_here(ledger: Ledger) -> None:
    """What killed tares left on the machine that they ran on: at most the last one's directory for a socket."""
    entries = ledger.entries()
    assert len(entries) <= 1, entries
    assert entries == ledger.abandoned()
    swept = sweep(entries, {"local": LocalHost()}, None, ledger)
    assert (swept.removed, swept.failed) == ([str(entry) for entry in entries], [])
    assert not [entry for entry in entries if Path(entry.ident).exists()]


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


_HERE = """
from tare.sites.engine import connect
from tare.sites.engines import EngineLedger, connect_to
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
host, ledger, named = LocalHost(), SqliteLedger(Path(given["ledger"])), given["engine"]
engine = connect() if named is None else connect_to(named)
ledger = ledger if named is None else EngineLedger(ledger, named)
"""
_OVER_SSH = f"""
from tare.sites.engine import connect
from tare.sites.ssh.dialing import SshDialer, agent_program
from tare.sites.ssh.engine import ForwardedEngine
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link
from tare.sites.sqlite_ledger import SqliteLedger
spec = given["spec"]
link = Link("far", SshDialer(spec, "victim", agent_program()), lease_s={LEASE_S}, engine=spec.engine)
forwarded = ForwardedEngine(spec, SqliteLedger(given["here"]))
host, ledger, engine = SshHost(link), AgentLedger(link), connect(forwarded.url)
"""
_VICTIM = """
import pickle, sys, time
from pathlib import Path
given = pickle.loads(bytes.fromhex(sys.argv[1]))
{surroundings}
from tare.deployments.registry import DEPLOYMENTS
from dataclasses import replace
from tare.sites.marks import group_of
deployment, task = DEPLOYMENTS[given["kind"]](host, ledger, engine), given["task"]
group = group_of(task.cgroup_parent.partition("_")[2], ledger.owner_on(host.name))
print("ready", flush=True)
deployment.start(replace(task, cgroup_parent=group))
print("started", flush=True)
time.sleep(1000)
"""


def kill_a_tare(
    reached: Reached, kind: str, task: Task, ledger_path: Path, after_s: float | None, *, engine: str | None = None
) -> None:
    """Have a tare of its own start a task on the host, and kill it: when that stands, or so long after it began.

    `engine`: which arms name; over SSH a host has one alone.
    """
    script = _VICTIM.format(surroundings=_HERE if reached.spec is None else _OVER_SSH)
    given = {"kind": kind, "task": task, "ledger": str(ledger_path), "spec": reached.spec, "engine": engine}
    given["here"] = reached.here
    argv = [sys.executable, "-c", script, pickle.dumps(given).hex()]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        try:
            assert victim.stdout.readline().strip() == "ready"
            if after_s is None:
                assert victim.stdout.readline().strip() == "started"
            else:
                time.sleep(after_s)
        finally:
            started = _children(victim.pid)
            victim.kill()
    deadline = time.monotonic() + 60
    while left := [pid for pid in started if reached.spec and Path(f"/proc/{pid}/exe").exists()]:
        assert time.monotonic() < deadline, f"{left} outlive the tare that started them"
        time.sleep(0.1)


def _children(pid: int) -> list[int]:
    """Of a tare over SSH: the programs that carry its connections, which must not outlive it."""
    listed = [place.read_text().split() for place in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(each) for pids in listed for each in pids]


def cleared(reached: Reached, ledger: Ledger, *, engine: str | None = None) -> list[str]:
    """What goes of a killed tare's, `kind ident …`: a sweep removes it, over SSH its agent when the lease is over.

    No tare sweeps after an agent: what it leaves is a failure.
    """
    if reached.spec is None:
        host, default = reached.host, reached.engine if engine is None else None
        with closing(Engines(host)) as others:
            swept = sweep(ledger.abandoned(), {host.name: host}, default, ledger, others)
        assert swept.failed == []
        return swept.removed
    before, deadline = noted(ledger), time.monotonic() + LEASE_S + 60
    while left := [entry for entry in ledger.entries() if not entry.keep]:
        assert time.monotonic() < deadline, left
        assert not [entry for entry in left if entry.why_left], left
        time.sleep(0.1)
    return before
