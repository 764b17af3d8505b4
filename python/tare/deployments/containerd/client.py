"""Client of a containerd through `ctr`: containers and snapshots in tare's own namespace."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tare.deployments.cgroup.placement import RuncCgroup
from tare.deployments.cgroup.removal import send
from tare.deployments.containerd.ctr import CALL_S, is_there
from tare.deployments.directories import force_unmount
from tare.deployments.mounts import below, mountinfo_of, parse_mountinfo
from tare.errors import RunFailed
from tare.sites import Host
from tare.sites.process import identify

NAMESPACE = "tare"
"""tare's namespace in containerd; dockerd uses `moby`, kubelet `k8s.io`."""
SNAPSHOTTER = "overlayfs"
"""Gives a container an overlay of the image's layer, as Docker's overlay2 does."""
RUNTIME = "io.containerd.runc.v2"
_SETTLE_S, _POLL_S = 5.0, 0.1
_SERVER_VERSION = re.compile(r"Server:.*?Version:\s+(\S+)", re.DOTALL)


@dataclass(frozen=True)
class Default:
    """containerd's defaults for an image.

    `spec`: OCI configuration with containerd's seccomp filter. `layer`: committed snapshot of the image.
    """

    spec: Mapping[str, Any]
    layer: str


@dataclass(frozen=True)
class Client:
    """One containerd, reached at its socket."""

    host: Host
    socket: str

    def version(self) -> str | None:
        """Version of containerd itself, not of `ctr`."""
        seen = _SERVER_VERSION.search(self._ctr("version"))
        return None if seen is None else seen[1]

    def default_of(self, image: str, name: str) -> Default:
        """Defaults that containerd applies to an image, read from a container that is created and removed."""
        self._ctr("containers", "create", "--seccomp", "--snapshotter", SNAPSHOTTER, image, name)
        spec: Mapping[str, Any] = json.loads(self._ctr("containers", "info", name))["Spec"]
        layer = json.loads(self._snapshots("info", name)).get("Parent")
        self._ctr("containers", "delete", name)
        if not layer:
            raise RunFailed(f"containerd has unpacked no layer of {image}")
        return Default(spec, str(layer))

    def mount(self, name: str, layer: str, target: str) -> None:
        """Mount a writable overlay of the layer, with the mount commands that the snapshotter gives."""
        self._snapshots("prepare", name, layer)
        for line in self._snapshots("mounts", target, name).splitlines():
            self.host.run(shlex.split(line), timeout_s=CALL_S)

    def run_argv(self, name: str, config: str, pid_file: str, cgroup: RuncCgroup) -> tuple[str, ...]:
        """Command that runs a container and stays until its program has ended."""
        own = ("ctr", "--address", self.socket, "--namespace", NAMESPACE)
        by_systemd = ("--runc-systemd-cgroup", "--cgroup", cgroup.path) if cgroup.by_systemd else ()
        return (*own, "run", "--runtime", RUNTIME, *by_systemd, "--config", config, "--pid-file", pid_file, name)

    def has(self, name: str) -> bool:
        """Whether a container of that name exists."""
        return name in self._ctr("containers", "ls", "-q").split()

    def remove(self, name: str, mounted: str) -> bool:
        """Remove container, program, mount and snapshot as far as they exist; return whether any did."""
        there, deadline = self._remove_container(name), time.monotonic() + _SETTLE_S
        while busy := self._busy_pids(name):  # a call of a killed tare, or a shim whose client was killed
            if late := time.monotonic() > deadline:
                for process in (identify(self.host, int(pid)) for pid in busy):
                    if process is not None:
                        send(self.host, process, "KILL")
            time.sleep(_POLL_S)
            there = self._remove_container(name) or there
            if late:
                break
        there = self._remove_container(name) or there
        mounts = parse_mountinfo(mountinfo_of(self.host))
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

    def _busy_pids(self, name: str) -> list[str]:
        """Process IDs of this container's shims and of `ctr` calls for it, found by their command lines."""
        pattern = f"([c]ontainerd-shim.* -id|[c]tr --address .*) {re.escape(name)}( |$)"
        return self.host.run(["pgrep", "-f", pattern], timeout_s=CALL_S, check=False).text.split()

    def _delete_task(self, name: str) -> None:
        """Delete the container's task.

        `ctr` exits with the program's code, so the task list decides whether it is gone.
        """
        own = ["ctr", "--address", self.socket, "--namespace", NAMESPACE]
        self.host.run([*own, "tasks", "delete", "--force", name], timeout_s=CALL_S, check=False)
        if name in self._ctr("tasks", "ls", "-q").split():
            raise RunFailed(f"containerd does not stop {name}", hint=f"ctr --namespace {NAMESPACE} tasks ls")

    def _snapshots(self, *words: str) -> str:
        return self._ctr("snapshots", "--snapshotter", SNAPSHOTTER, *words)

    def _ctr(self, *words: str) -> str:
        """Run `ctr`. Raises `RunFailed` on failure, where `ctr` of kube images raises `EnvironmentLacks`."""
        argv = ["ctr", "--address", self.socket, "--namespace", NAMESPACE, *words]
        try:
            return self.host.run(argv, timeout_s=CALL_S).text
        except RunFailed as error:
            raise RunFailed(f"containerd at {self.socket} on {self.host.name}: {error.what}") from error


def scratch_of(name: str) -> str:
    """Directory of a task.

    No directory above it belongs to tare: another tare could be removing a shared one at any time.
    """
    return f"/run/tare-task.{name}"


def root_of(name: str) -> str:
    """Mount point of a task's root."""
    return f"{scratch_of(name)}/root"


def remove_container(host: Host, ident: str) -> bool:
    """Remove a container that the ledger lists as `NAME@SOCKET`; return whether anything of it was left.

    If containerd and its socket are gone, only the mount can be left.
    """
    name, _, socket = ident.partition("@")
    if not is_there(host, socket):
        return force_unmount(host, root_of(name))
    return Client(host, socket).remove(name, root_of(name))
