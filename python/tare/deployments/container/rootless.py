"""What tare does as root for a container of rootless Podman, because the user's engine may not.

The user's engine creates the container but does not start its program. tare moves it into the run's control group,
sets its limits, some of which no user may raise, and then the program is started. Meanwhile the files of the task
belong to the IDs of the user namespace.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.deployments import Instance, Task
from tare.deployments.cgroup.placement import Placement
from tare.deployments.cgroup.removal import warden
from tare.deployments.enter import run_inside
from tare.deployments.rlimits import UNLIMITED, ceilings, process_ceilings, rlimits
from tare.errors import EnvironmentLacks, RunFailed
from tare.record.engine_facts import EngineFacts
from tare.sites import Completed, Host, Output, Process
from tare.sites.engine import libpod_url
from tare.sites.engines import Service, why_no_user_ranges
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import alive, to_ident
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container as EngineContainer

_HANDOVER = Path(__file__).with_name("handover.py")
_CALL_S = 60.0
_HANDOVER_S = 600.0
NETWORKS: Mapping[NetworkKind, str] = {
    NetworkKind.ROOTLESSPORT: "slirp4netns:port_handler=rootlesskit",
    NetworkKind.SLIRP4NETNS: "slirp4netns:port_handler=slirp4netns",
    NetworkKind.PASTA: "none",
}
"""Network → Podman's option (podman-run(1), --network). `none` for pasta, which Podman 4.3 does not support."""
_PASTA = ("--config-net", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none", "--no-map-gw")
"""Options that Podman 4.4 and later give to pasta (containers/common, libnetwork/pasta)."""
_START_S, _POLL_S = 20.0, 0.02


@dataclass(frozen=True)
class Rootless:
    """`service`: the user's engine. `facts`: facts that the engine reports."""

    host: Host
    ledger: Ledger
    engine: DockerClient
    placement: Placement
    service: Service
    facts: EngineFacts
    carriers: dict[str, Process] = field(default_factory=dict)
    """Name of a task → its pasta process."""

    def refuse(self, task: Task) -> None:
        """Raise `EnvironmentLacks` for anything that the user's engine cannot provide even with tare's help."""
        if task.volumes or task.layers:
            raise EnvironmentLacks(
                f"{task.name}: volumes and layers of rootless Podman belong to its user",
                hint="use storage bind",
            )
        if self.host.run(["id", "-u"], timeout_s=_CALL_S).text.strip() != "0":
            raise EnvironmentLacks(
                "rootless Podman sets no limits on this host, and tare needs root to set them instead",
                hint="run tare with sudo",
            )
        if (why := why_no_user_ranges(self.facts)) is not None:
            raise EnvironmentLacks(f"{task.name}: {why}")
        for bind in task.binds:
            self._must_be_searchable(bind.source)

    def ulimits(self, task: Task) -> Mapping[str, Any]:
        """Resource limits that the user's engine may set: none above the service's own hard limits."""
        return rlimits(task.limits, {**ceilings(self.host), **process_ceilings(self.host, self.service.pid)})

    def give(self, task: Task) -> None:
        """Give the task's writable files to the IDs of the user namespace."""
        self._hand_over("give", task)

    def take_back(self, task: Task) -> None:
        """Undo `give`, so that the next run's program owns the files; safe if nothing was given."""
        there = [each for each in self._writable(task) if self._is_there(each)]
        if there:
            self._hand_over("take", task, there)

    def connect(self, task: Task, pid: int) -> None:
        """Start pasta for a container whose network namespace is still empty, as Podman 4.4 and later do."""
        argv = [*as_user(self.service), "pasta", "--foreground", *_PASTA, "--tcp-ports", f"127.0.0.1/{task.port}"]
        argv += ["--userns", f"/proc/{pid}/ns/user", "--netns", f"/proc/{pid}/ns/net"]
        output = Output(f"{task.output.stdout}.pasta", f"{task.output.stderr}.pasta")
        process = self.host.start(argv, output=output, announce=noting(self.ledger, self.host))
        self.carriers[task.name] = process
        deadline = time.monotonic() + _START_S
        while not self._listens(task.port):
            if not alive(self.host, process) or time.monotonic() > deadline:
                lines = (self.host.read(output.stderr) or b"").decode(errors="replace").strip().splitlines()
                raise RunFailed(
                    f"pasta does not carry the port of {task.name}: {lines[-1] if lines else 'it ended'}"
                )
            time.sleep(_POLL_S)

    def disconnect(self, task: Task) -> None:
        """End the process that `connect` started, if any."""
        process = self.carriers.pop(task.name, None)
        if process is not None:
            words = ("end", str(process.pid), str(process.started_ticks), "1")
            warden(self.host, *words, timeout_s=_CALL_S)
            self.ledger.forget(Kind.PROCESS, to_ident(process), host=self.host.name)

    def _listens(self, port: int) -> bool:
        wanted = f"0100007F:{port:04X} 00000000:0000 0A"
        return wanted in (self.host.read("/proc/net/tcp") or b"").decode()

    def place(self, task: Task, container: EngineContainer) -> None:
        """Initialise the container without starting its program; put it into the run's cgroup with its limits."""
        url = libpod_url(self.engine, f"containers/{container.id}/init")
        answer = self.engine.api.post(url, timeout=self.engine.api.timeout)
        if not answer.ok:
            message = answer.json().get("message") if answer.content else answer.reason
            raise RunFailed(f"{task.name} cannot be started: {message}")
        container.reload()
        pid = int(container.attrs["State"]["Pid"])
        for file in self.placement.make(task):
            self.host.put(str(pid).encode(), file)
        if mover := self.placement.mover(task):
            self.host.run([*mover, str(pid)], timeout_s=_CALL_S)
        self.host.put(b"0", f"/proc/{pid}/oom_score_adj")  # systemd gives a user's engine 200
        held = ceilings(self.host)
        wanted = rlimits(task.limits, held)
        # Without CAP_SYS_RESOURCE no limit can be raised, and only a process of the same namespace can lower one.
        within = ["nsenter", f"--user=/proc/{pid}/ns/user"] if held else []
        words = [f"--{name}={_limit_word(limit.soft)}:{_limit_word(limit.hard)}" for name, limit in wanted.items()]
        self.host.run([*within, "prlimit", "--pid", str(pid), *words], timeout_s=_CALL_S)
        if task.network is NetworkKind.PASTA and task.port:
            self.connect(task, pid)

    def exec(
        self, instance: Instance, argv: Sequence[str], *, timeout_s: float, user: str, stdin: bytes
    ) -> Completed:
        """Run a program in the container without its engine.

        crun looks for the container's first cgroup, which systemd removes once tare has moved the program out.
        """
        return run_inside(
            self.host,
            self.placement.cgroups,
            instance,
            argv,
            launcher=None,
            own_users=True,
            timeout_s=timeout_s,
            user=user,
            stdin=stdin,
        )

    def _hand_over(self, way: str, task: Task, places: Sequence[str] | None = None) -> None:
        argv = ["python3", "-I", "-S", "-", way, self._id_ranges("uidmap"), self._id_ranges("gidmap")]
        argv += self._writable(task) if places is None else places
        self.host.run(argv, timeout_s=_HANDOVER_S, stdin=_HANDOVER.read_bytes())

    def _id_ranges(self, kind: str) -> str:
        """The namespace's ID ranges, as the engine reports them."""
        rows = (self.facts.engine_id_maps or {}).get(kind) or []
        if not rows:
            raise EnvironmentLacks("rootless Podman reports no user ranges", hint="give its user ranges: subuid(5)")
        return ",".join(f"{row['container_id']}:{row['host_id']}:{row['size']}" for row in rows)

    def _must_be_searchable(self, path: str) -> None:
        user = self.service
        argv = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "test", "-x"]
        above = path.rpartition("/")[0]
        if self.host.run([*argv, above], timeout_s=_CALL_S, check=False).code != 0:
            raise EnvironmentLacks(
                f"user {user.uid}, who runs Podman, cannot enter {above}",
                hint="set TARE_HOME to a directory that every user can enter (chmod o+x)",
            )

    def _is_there(self, path: str) -> bool:
        return self.host.run(["test", "-e", path], timeout_s=_CALL_S, check=False).code == 0

    @staticmethod
    def _writable(task: Task) -> list[str]:
        return [bind.source for bind in task.binds if not bind.read_only]


def as_user(service: Service) -> tuple[str, ...]:
    """Words to put before a program so that it sees and may do what the user's engine does."""
    drop = ("setpriv", f"--reuid={service.uid}", f"--regid={service.gid}", "--clear-groups")
    return ("nsenter", f"--mount=/proc/{service.pid}/ns/mnt", *drop)


def _limit_word(limit: int) -> str:
    return "unlimited" if limit == UNLIMITED else str(limit)
