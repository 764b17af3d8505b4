"""A deployment for calibration: a bare server behind a proxy that holds back the client's messages.

The proxy stands in the server's own control group: it is part of what the arm puts around the database, counts to
its CPU time, is pinned as it is, and goes when the group is cleared.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from tare.calibrate.around_bare import BareWith
from tare.deployments import Instance, Observation, Task
from tare.deployments.cgroup.hierarchy import parse_cgroups
from tare.errors import RunFailed, TimedOut
from tare.sites import Host, Output, Process
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import to_ident

PROGRAM = Path(__file__).with_name("delay_proxy.py")
LOG_NAME = "sut.proxy.jsonl"
"""The proxy's log among the raw files of a run."""
_START_S = 20.0
_POLL_S = 0.01


def behind_proxy(delay_us: float) -> BareWith:
    """Makes the deployment. `delay_us`: microseconds by which each message to the server is held back."""
    return BareWith(lambda host, ledger, _: DelayProxies(host, ledger, delay_us))


@dataclass(frozen=True)
class DelayProxies:
    """Reaching a task's port through a proxy of its own."""

    host: Host
    ledger: Ledger
    delay_us: float
    _running: dict[str, Process] = field(default_factory=dict)

    def prepare(self, task: Task) -> None:
        """Nothing: the proxy joins the task's control group."""

    def begin(self, instance: Instance) -> Instance:
        """The proxy, in the task's control group; clients are told its port."""
        return replace(instance, task=replace(instance.task, port=self._start_proxy(instance)))

    def without(self, seen: Observation) -> Observation:
        """All of it: a proxy is none of the task's properties."""
        return seen

    def end(self, instance: Instance) -> None:
        """It went with the control group."""
        proxy = self._running.pop(instance.task.name, None)
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
        argv = ["python3", "-I", "-S", program, json.dumps(spec)]
        self._running[instance.task.name] = self.host.start(
            argv, output=output, announce=noting(self.ledger, self.host)
        )
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
