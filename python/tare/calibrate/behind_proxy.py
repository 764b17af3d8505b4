"""A deployment for calibration: a bare server behind a proxy that holds back the client's messages.

The proxy stands in the server's own control group: it is part of what the arm puts around the database, counts to
its CPU time, is pinned as it is, and goes when the group is cleared.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar

from tare.deployments import Instance, Observation, Right, Task
from tare.deployments.bare import Bare
from tare.deployments.cgroups import parse_cgroups
from tare.errors import RunFailed, TimedOut
from tare.sites import Completed, Host, Output, Process
from tare.sites.ledger import Kind, Ledger
from tare.sites.process import to_ident

if TYPE_CHECKING:
    from docker import DockerClient

PROGRAM = Path(__file__).with_name("delay_proxy.py")
LOG_NAME = "sut.proxy.jsonl"
"""The proxy's log among the raw files of a run."""
_START_S = 20.0
_POLL_S = 0.01


@dataclass(frozen=True)
class BehindProxy:
    """Makes the deployment. `delay_us`: microseconds by which each message to the server is held back."""

    delay_us: float

    @property
    def needs(self) -> frozenset[Right]:
        """As `bare`."""
        return Bare.needs

    @property
    def isolates_network(self) -> bool:
        """As `bare`."""
        return Bare.isolates_network

    @property
    def own_root(self) -> bool:
        """As `bare`."""
        return Bare.own_root

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> Proxied:
        """On one host."""
        return Proxied(Bare(host, ledger, engine), host, ledger, self.delay_us)


@dataclass
class Proxied:
    """A bare task whose port is reached through the proxy."""

    inner: Bare
    host: Host
    ledger: Ledger
    delay_us: float
    needs: ClassVar[frozenset[Right]] = Bare.needs
    isolates_network: ClassVar[bool] = Bare.isolates_network
    own_root: ClassVar[bool] = Bare.own_root
    _proxies: dict[str, Process] = field(default_factory=dict)

    def start(self, task: Task) -> Instance:
        """The task first, then its proxy in the task's control group; clients are told the proxy's port."""
        instance = self.inner.start(task)
        try:
            return replace(instance, task=replace(task, port=self._start_proxy(instance)))
        except BaseException:
            self.stop(instance)
            raise

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """As `bare`."""
        return self.inner.exec(instance, argv, timeout_s=timeout_s, user=user, stdin=stdin)

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """As `bare`."""
        return self.inner.wait(instance, timeout_s)

    def observe(self, instance: Instance) -> Observation:
        """As `bare`: of the server, not of the proxy."""
        return self.inner.observe(instance)

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """The task ends and its control group is cleared, the proxy with it."""
        self.inner.stop(instance, grace_s)
        proxy = self._proxies.pop(instance.task.name, None)
        if proxy is not None:
            self.ledger.forget(Kind.PROCESS, to_ident(proxy), host=self.host.name)

    def _start_proxy(self, instance: Instance) -> int:
        """Its port, as soon as it tells it."""
        raw = PurePosixPath(instance.task.output.stdout)
        output = Output(stdout=str(raw.with_suffix(".proxy.port")), stderr=str(raw.with_suffix(".proxy.stderr")))
        program = str(raw.with_suffix(".proxy.py"))
        self.host.put(PROGRAM, program)
        spec = {
            "port": instance.task.port,
            "delay_us": self.delay_us,
            "cgroup_procs": self._procs(instance),
            "log": str(raw.with_suffix(".proxy.jsonl")),
        }
        process = self.host.start(["python3", "-I", "-S", program, json.dumps(spec)], output=output)
        self._proxies[instance.task.name] = process
        self.ledger.note(Kind.PROCESS, to_ident(process), host=self.host.name)
        return self._port(output)

    def _procs(self, instance: Instance) -> list[str]:
        cgroups = parse_cgroups((self.host.read("/proc/self/mountinfo") or b"").decode())
        own = (self.host.read(f"/proc/{instance.process.pid}/cgroup") or b"").decode()
        return list(cgroups.procs_files(own))

    def _port(self, output: Output) -> int:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            told = (self.host.read(output.stdout) or b"").decode()
            if told.endswith("\n"):
                return int(told)
            if words := (self.host.read(output.stderr) or b"").decode(errors="replace").strip():
                raise RunFailed(f"the delaying proxy cannot be started: {words.splitlines()[-1]}")
            time.sleep(_POLL_S)
        raise TimedOut(f"the delaying proxy did not tell its port within {_START_S:g} s")
