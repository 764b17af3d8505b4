"""What tare asks of a containerd: containers and snapshots in a namespace of its own, by `ctr`."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.deployments.containerd.ctr import CALL_S, is_there
from tare.deployments.directories import force_unmount
from tare.deployments.mounts import below, parse_mountinfo
from tare.errors import RunFailed
from tare.sites import Host

NAMESPACE = "tare"
"""Of containerd's: dockerd has its containers in `moby`, kubelet in `k8s.io`."""
SNAPSHOTTER = "overlayfs"
"""As Docker's overlay2, it gives a container an overlay of the image's layer."""
RUNTIME = "io.containerd.runc.v2"
_SETTLE_S, _POLL_S = 5.0, 0.1
_SERVER_VERSION = re.compile(r"Server:.*?Version:\s+(\S+)", re.DOTALL)


@dataclass(frozen=True)
class Default:
    """`spec`: an OCI configuration, with containerd's seccomp filter. `layer`: the image's committed snapshot."""

    spec: Mapping[str, Any]
    layer: str


@dataclass(frozen=True)
class Client:
    """One containerd."""

    host: Host
    socket: str

    def version(self) -> str | None:
        """Of containerd itself, not of `ctr`."""
        seen = _SERVER_VERSION.search(self._ctr("version"))
        return None if seen is None else seen[1]

    def default_of(self, image: str, name: str) -> Default:
        """How containerd would run an image of its own accord; asked of a container that is made and removed."""
        self._ctr("containers", "create", "--seccomp", "--snapshotter", SNAPSHOTTER, image, name)
        spec: Mapping[str, Any] = json.loads(self._ctr("containers", "info", name))["Spec"]
        layer = json.loads(self._snapshots("info", name)).get("Parent")
        self._ctr("containers", "delete", name)
        if not layer:
            raise RunFailed(f"containerd has unpacked no layer of {image}")
        return Default(spec, str(layer))

    def mount(self, name: str, layer: str, target: str) -> None:
        """A writable overlay of the layer, as the snapshotter says that it is to be mounted."""
        self._snapshots("prepare", name, layer)
        for line in self._snapshots("mounts", target, name).splitlines():
            self.host.run(shlex.split(line), timeout_s=CALL_S)

    def run_argv(self, name: str, config: str, pid_file: str) -> tuple[str, ...]:
        """The call that makes a container and stays until its program has ended."""
        own = ("ctr", "--address", self.socket, "--namespace", NAMESPACE)
        return (*own, "run", "--runtime", RUNTIME, "--config", config, "--pid-file", pid_file, name)

    def has(self, name: str) -> bool:
        """Whether there is a container of that name."""
        return name in self._ctr("containers", "ls", "-q").split()

    def remove(self, name: str, mounted: str) -> bool:
        """Container, program, mount and snapshot, whichever is there; whether anything was."""
        there, deadline = self._remove_container(name), time.monotonic() + _SETTLE_S
        while at_it := self._at_it(name):  # a call of a killed tare's, or a shim whose client was killed
            if late := time.monotonic() > deadline:
                self.host.run(["kill", "-KILL", *at_it], timeout_s=CALL_S, check=False)
            time.sleep(_POLL_S)
            there = self._remove_container(name) or there
            if late:
                break
        there = self._remove_container(name) or there
        mounts = parse_mountinfo((self.host.read("/proc/self/mountinfo") or b"").decode(errors="replace"))
        if mounted in below(mounts, mounted):
            force_unmount(self.host, mounted)
        if name in (line.split()[0] for line in self._snapshots("ls").splitlines()[1:] if line.strip()):
            self._snapshots("rm", name)
            there = True
        return there

    def _remove_container(self, name: str) -> bool:
        there = self.has(name)
        if there:
            if name in self._ctr("tasks", "ls", "-q").split():
                self._delete_task(name)
            self._ctr("containers", "delete", name)
        return there

    def _at_it(self, name: str) -> list[str]:
        """Pids of this container's shims and of calls of `ctr` that name it, by their command lines."""
        pattern = f"([c]ontainerd-shim.* -id|[c]tr --address .*) {re.escape(name)}( |$)"
        return self.host.run(["pgrep", "-f", pattern], timeout_s=CALL_S, check=False).text.split()

    def _delete_task(self, name: str) -> None:
        """Its own exit code is the program's; whether the task is gone is seen by the list."""
        own = ["ctr", "--address", self.socket, "--namespace", NAMESPACE]
        self.host.run([*own, "tasks", "delete", "--force", name], timeout_s=CALL_S, check=False)
        if name in self._ctr("tasks", "ls", "-q").split():
            raise RunFailed(f"containerd does not end {name}", hint=f"ctr --namespace {NAMESPACE} tasks ls")

    def _snapshots(self, *words: str) -> str:
        return self._ctr("snapshots", "--snapshotter", SNAPSHOTTER, *words)

    def _ctr(self, *words: str) -> str:
        """What containerd refuses fails the run, where `ctr` of an image says that there is none to speak to."""
        argv = ["ctr", "--address", self.socket, "--namespace", NAMESPACE, *words]
        try:
            return self.host.run(argv, timeout_s=CALL_S).text
        except RunFailed as error:
            raise RunFailed(f"containerd at {self.socket} on {self.host.name}: {error.what}") from error


def scratch_of(name: str) -> str:
    """The directory of a task's own. None above it is shared: another tare may be removing its own at any time."""
    return f"/run/tare-task.{name}"


def root_of(name: str) -> str:
    """Where a task's root is mounted."""
    return f"{scratch_of(name)}/root"


def remove_container(host: Host, ident: str) -> bool:
    """Remove a container as it stands in the ledger, `NAME@SOCKET`; whether anything of it was there.

    Of a containerd that is gone with its socket only the mount may be left.
    """
    name, _, socket = ident.partition("@")
    if not is_there(host, socket):
        return force_unmount(host, root_of(name))
    return Client(host, socket).remove(name, root_of(name))
