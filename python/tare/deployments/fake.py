"""A deployment without root and without an engine: tasks are plain processes of the host.

It ignores image, binds, user, limits and network; paths are the host's own. It lets everything that is built on
deployments be tested in seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from uuid import uuid4

from tare.deployments import Endpoint, Instance, Task
from tare.deployments.cgroup.removal import send
from tare.errors import RunFailed, TimedOut
from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.sites import Completed, Host
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import alive, to_ident
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient

_LOOPBACK = "127.0.0.1"
_POLL_S = 0.01
_OURS = uuid4().hex[:8]
"""Part of all file names, so that a process left by a killed tare cannot write its exit code for a task of this
one."""

_KEEP_CODE = """
code_file=$1
shift
trap 'if [ -n "$!" ]; then kill "$!" 2>/dev/null; else exit 1; fi' TERM
setpriv --pdeathsig KILL "$@" &
child=$!
while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
done
[ "$code" -le 128 ] || code=$((128 - code))
echo "$code" >"$code_file.part" && mv "$code_file.part" "$code_file"
"""
"""Runs a program, forwards SIGTERM to it, and writes its exit code to a file. If killed, it takes the program
along."""


class FakeDeployment:
    """Plain processes, each in a session of its own. `emulated`: report their CPU as emulated."""

    needs: ClassVar[tuple[Requirement, ...]] = ()
    isolates_network: ClassVar[bool] = True
    own_root: ClassVar[bool] = False

    def __init__(
        self, host: Host, ledger: Ledger, engine: DockerClient | None = None, *, emulated: bool = False
    ) -> None:
        self._host = host
        self._ledger = ledger
        self._engine = engine
        self._emulated = emulated

    def start(self, task: Task) -> Instance:
        """Start `task.argv` with the task's environment and tare's PATH."""
        argv = ["sh", "-c", _KEEP_CODE, "sh", _code_file(task), *task.argv]
        env = {"PATH": os.environ.get("PATH", os.defpath), **task.env}
        process = self._host.start(argv, output=task.output, env=env, announce=noting(self._ledger, self._host))
        published = task.network in (NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS)
        return Instance(
            task=task,
            deployment="fake-emulated" if self._emulated else "fake",
            process=process,
            container_id=None,
            address=task.listen,
            published=Endpoint(_LOOPBACK, task.port) if published else None,
            emulated=self._emulated,
        )

    def exec(
        self,
        instance: Instance,
        argv: Sequence[str],
        *,
        timeout_s: float,
        user: str = "",  # noqa: ARG002 - everything runs as tare's own user
        stdin: bytes = b"",
    ) -> Completed:
        """Run a program on the host; the caller judges a non-zero exit code."""
        env = {"PATH": os.environ.get("PATH", os.defpath), **instance.task.env}
        return self._host.run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=False)

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Return the program's exit code, or minus the number of the signal that ended it."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            ended = not alive(self._host, instance.process)
            if code := self._host.read(_code_file(instance.task)):
                return int(code)
            if ended:
                raise RunFailed(f"{instance.task.name} ended without an exit code")
            time.sleep(_POLL_S)
        raise TimedOut(f"{instance.task.name} did not end within {timeout_s:g} s")

    def observe(self, instance: Instance) -> Observation:  # noqa: ARG002 - there is nothing around it
        """Return an observation without values: nothing is in force around the process."""
        return Observation(
            cgroups={},
            cpu_weight=None,
            cpus_allowed=None,
            cpu_quota=None,
            memory_bytes=None,
            limits={},
            seccomp=None,
            speculation={},
            namespaces={},
            binary_digest=None,
            scheduler=None,
            oom_score_adj=None,
        )

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """Send SIGTERM to the session, then SIGKILL after `grace_s`."""
        for signal_name, patience_s in (("TERM", grace_s), ("KILL", 5.0)):
            if self._ended_within(instance, 0):
                break
            send(self._host, instance.process, signal_name, group=True)
            if self._ended_within(instance, patience_s):
                break
        self._host.run(["rm", "-f", "--", _code_file(instance.task)], timeout_s=10)
        self._ledger.forget(Kind.PROCESS, to_ident(instance.process), host=self._host.name)

    def _ended_within(self, instance: Instance, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while alive(self._host, instance.process):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True


class FakeEmulated:
    """Makes fake deployments that report the CPU of every instance as emulated."""

    needs = FakeDeployment.needs
    isolates_network = FakeDeployment.isolates_network
    own_root = FakeDeployment.own_root

    def __call__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> FakeDeployment:
        """Make the deployment."""
        return FakeDeployment(host, ledger, engine, emulated=True)


def _code_file(task: Task) -> str:
    return str(Path(task.output.stdout).with_name(f"{task.name}-{_OURS}.code"))
