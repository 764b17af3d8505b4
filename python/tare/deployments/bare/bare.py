"""`bare`: the program of the image as a process of the host, with only the image's root around it.

What tare sets up by hand, and why: docs/concepts/deployments.md, docs/decisions/0005-bare-is-more-than-chroot.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tare.deployments import Bind, Instance, Task
from tare.deployments.cgroup.removal import warden
from tare.deployments.defaults import SCRATCH, environment, user
from tare.deployments.directories import remove_tree
from tare.deployments.mounts import below, mountinfo_of, parse_mountinfo
from tare.deployments.observe import observe, shm_bytes_of
from tare.deployments.rlimits import OWN_STATUS, ceilings, rlimits
from tare.deployments.shared_resources import SharedResources
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.record.observation import Observation
from tare.requirements import Requirement
from tare.requirements.rights import ROOT
from tare.sites import Completed, Host, NewFile, Process
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import make_marked
from tare.sites.process import BOOT_ID, alive, boot_id, to_ident
from tare.sites.read_ahead import fetched
from tare.sites.reading import ending, last_line_of
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient

LAUNCHER = Path(__file__).with_name("launcher.py")
_NETWORKS = (NetworkKind.HOST, NetworkKind.SOCKET, NetworkKind.SHARED, NetworkKind.UNTRACKED)
_HOSTNAME, _RESOLVERS = "/proc/sys/kernel/hostname", "/etc/resolv.conf"
_CALL_S = 30.0
_CGROUPS = "/sys/fs/cgroup"
"""A program may size itself by its limits, as the JVM does, so it sees the host's cgroups."""
_LAST_WORDS_BYTES = 400


class Bare:
    """Runs a task in the image's root, the run's cgroup and the network of the host (or of another instance)."""

    needs: ClassVar[tuple[Requirement, ...]] = (ROOT,)
    isolates_network: ClassVar[bool] = False
    own_root: ClassVar[bool] = True

    def __init__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> None:
        self._host = host
        self._ledger = ledger
        self._shared = SharedResources(host, ledger, engine)

    def start(self, task: Task) -> Instance:
        """Start the task. Everything is noted in the ledger before it is made, and removed if the start fails."""
        if task.network not in _NETWORKS:
            raise EnvironmentLacks(
                f"{task.name}: a bare task is on no engine's network, so it cannot use {task.network.value}",
                hint="use network: host or untracked, or shared beside another task",
            )
        try:
            started = self._launch(task)
        except BaseException:
            self._remove(task)
            raise
        process = Process(started["pid"], started["started_ticks"], boot_id(self._host))
        self._ledger.note(Kind.PROCESS, to_ident(process), host=self._host.name)
        address = task.beside.address if task.beside is not None else task.listen
        return Instance(task, "bare", process, container_id=None, address=address, published=None)

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str = "", stdin: bytes = b""
    ) -> Completed:
        """Run a program in the task's root, cgroups and network, under its limits; any exit code is returned."""
        task, own = instance.task, f"/proc/{instance.process.pid}"
        seen = fetched(self._host, (f"{own}/stat", f"{own}/cgroup", BOOT_ID, OWN_STATUS))
        if not alive(seen, instance.process):
            raise RunFailed(f"{task.name} has ended: {self._last_words(task)}")
        cgroup = (seen.read(f"{own}/cgroup") or b"").decode()
        spec = {
            **_program(task, seen),
            "argv": list(argv),
            "enter": instance.process.pid,
            "own_output": False,
            "cgroup_procs": list(self._shared.placement.cgroups.procs_files(cgroup)),
            "network_of": instance.process.pid,
        }
        if user:
            spec["user"] = user
        command = ["python3", "-I", "-S", f"{_scratch(task)}/launcher.py", "exec"]
        done = self._host.run(command, timeout_s=timeout_s, stdin=launcher_input(spec) + stdin, check=False)
        return Completed(tuple(argv), done.code, done.stdout, done.stderr)

    def wait(self, instance: Instance, timeout_s: float) -> int:
        """Wait for the task without polling: the host sleeps in the kernel.

        A task that has ended returns at once.
        """
        process = instance.process
        status = f"{_scratch(instance.task)}/status"
        if code := self._host.read(status):
            return int(code)
        words = ("wait", str(process.pid), str(process.started_ticks), status)
        try:
            return int(warden(self._host, *words, timeout_s=timeout_s))
        except TimedOut as error:
            raise TimedOut(f"{instance.task.name} did not end within {timeout_s:g} s") from error

    def observe(self, instance: Instance) -> Observation:
        """Read /proc and the task's cgroups."""
        cgroups = self._shared.placement.cgroups
        return observe(self._host, cgroups, instance.process.pid, instance.task.targets)

    def stop(self, instance: Instance, grace_s: float = 10.0) -> None:
        """Terminate the first process, kill it after `grace_s`, and kill whatever is left in its cgroup."""
        process = instance.process
        if alive(self._host, process):
            words = ("end", str(process.pid), str(process.started_ticks), f"{grace_s:g}")
            warden(self._host, *words, timeout_s=grace_s + _CALL_S)
        self._ledger.forget(Kind.PROCESS, to_ident(process), host=self._host.name)
        self._remove(instance.task)

    def _launch(self, task: Task) -> dict[str, int]:
        scratch = _scratch(task)
        if task.volumes or task.layers:
            raise RunFailed(f"{task.name}: a bare task has no engine, so no volumes or layers")
        self._ledger.note(Kind.PATH, scratch, host=self._host.name)
        make_marked(self._host, scratch, "0711")
        procs = self._shared.placement.make(task)
        seen = fetched(self._host, (_HOSTNAME, _RESOLVERS, OWN_STATUS))
        names, mountinfo = resolver_files(seen), mountinfo_of(self._host)
        files = {"launcher.py": LAUNCHER.read_bytes(), **names}
        self._host.put_all([NewFile(f"{scratch}/{name}", content) for name, content in files.items()])
        lent = (Bind(f"{scratch}/{name}", f"/etc/{name}", read_only=True) for name in names)
        spec = {
            **_program(task, seen),
            "rootfs": task.image.rootfs,
            "binds": [asdict(bind) for bind in (*lent, *task.binds)],
            "scratch": [asdict(place) for place in SCRATCH],
            "shm_bytes": task.limits.shm_bytes or shm_bytes_of(self._host, "self", mountinfo),
            "own_output": True,
            "stdout": task.output.stdout,
            "stderr": task.output.stderr,
            "status": f"{scratch}/status",
            "cgroup_procs": list(procs),
            "mover": list(self._shared.placement.mover(task)),
            "cgroup_mounts": below(parse_mountinfo(mountinfo), _CGROUPS)[::-1],
            "network_of": task.beside.process.pid if task.beside is not None else None,
            "own_network": task.network is NetworkKind.UNTRACKED,
        }
        launch = ["python3", "-I", "-S", f"{scratch}/launcher.py", "start"]
        done = self._host.run(launch, timeout_s=_CALL_S, stdin=launcher_input(spec), check=False)
        if done.code != 0:
            raise RunFailed(f"{task.name} cannot be started: {done.stderr.decode(errors='replace').strip()}")
        answer: dict[str, int] = json.loads(done.stdout)
        return answer

    def _remove(self, task: Task) -> None:
        self._shared.placement.remove(task)
        remove_tree(self._host, _scratch(task))
        self._ledger.forget(Kind.PATH, _scratch(task), host=self._host.name)
        self._shared.leave(task.cgroup_parent)

    def _last_words(self, task: Task) -> str:
        tail = (ending(self._host, task.output.stderr) or ending(self._host, task.output.stdout)).strip()
        return last_line_of(tail[-_LAST_WORDS_BYTES:]) or "it printed nothing"


def _program(task: Task, seen: Host) -> dict[str, Any]:
    """Fields of the launcher's specification that `start` and `exec` share."""
    limits = rlimits(task.limits, ceilings(seen))
    return {
        "argv": list(task.argv),
        "env": dict(environment(task)),
        "user": user(task),
        "workdir": task.workdir,
        "rlimits": {name: (limit.soft, limit.hard) for name, limit in limits.items()},
    }


def resolver_files(seen: Host) -> Mapping[str, bytes]:
    """Content of the files of /etc that resolve names, as an engine writes them."""
    name = (seen.read(_HOSTNAME) or b"localhost").decode().strip()
    return {
        "hosts": f"127.0.0.1\tlocalhost {name}\n::1\tlocalhost ip6-localhost ip6-loopback\n".encode(),
        "hostname": f"{name}\n".encode(),
        "resolv.conf": seen.read(_RESOLVERS) or b"",
    }


def launcher_source() -> tuple[str, ...]:
    """Words by which Python runs the launcher without a copy of it on the host."""
    return ("-c", LAUNCHER.read_bytes().decode())


def launcher_input(spec: Mapping[str, Any]) -> bytes:
    """Standard input of launcher.py: length of the specification, the specification, then the program's input."""
    words = json.dumps(spec).encode()
    return b"%010d" % len(words) + words


def _scratch(task: Task) -> str:
    """Directory of a task.

    No directory above it belongs to tare: another tare could be removing a shared one at any time.
    """
    return f"/run/tare-task.{task.name}"
