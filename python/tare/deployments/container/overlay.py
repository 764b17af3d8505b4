"""Directories of the overlay that is a container's root: an engine's own, or a snapshot of containerd's.

An engine whose images containerd holds (the default from Docker 29 on) names no directories in `GraphDriver`.
Its containerd has one snapshot per container, under the container's ID, and says how to mount it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tare.deployments.containerd.ctr import ctr, find_socket
from tare.deployments.mounts import mountinfo_of, parse_mountinfo
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Host

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container as EngineContainer

_NAMESPACE = "moby"
"""dockerd's namespace in containerd, unless it is told another (dockerd --containerd-namespace)."""


@dataclass(frozen=True)
class Overlay:
    """`upper`: the writable directory. `lower`: the directories below it, topmost first."""

    upper: str
    lower: tuple[str, ...]


def overlay_of(engine: DockerClient, host: Host, container: EngineContainer) -> Overlay:
    """Directories of a container that was created. Raises `EnvironmentLacks` if its root is no overlay of any."""
    container.reload()
    driver = container.attrs.get("GraphDriver") or {}
    data = driver.get("Data") or _of_snapshot(engine, host, str(container.id))
    if not data.get("UpperDir") or not data.get("LowerDir"):
        raise EnvironmentLacks(
            "storage `layer` needs an engine with an overlay of directories; this one uses "
            f"{driver.get('Name') or engine.info().get('Driver') or 'another snapshotter'}",
            hint="use the storage driver overlay2 or the snapshotter overlayfs, or another storage",
        )
    return Overlay(str(data["UpperDir"]), tuple(str(data["LowerDir"]).split(":")))


def must_be_root(host: Host, overlay: Overlay, pid: int, name: str) -> None:
    """Raise `RunFailed` unless the kernel names `overlay` as the root of the process."""
    roots = [mount for mount in parse_mountinfo(mountinfo_of(host, pid)) if mount.target == "/"]
    if not roots:
        return  # it has ended, and what started it says why
    options = dict(option.partition("=")[::2] for option in roots[-1].super_options)
    upper = options.get("upperdir", "")
    # An engine with many layers mounts by paths that are relative to its own directory.
    if not upper or (upper != overlay.upper and (upper.startswith("/") or not overlay.upper.endswith(f"/{upper}"))):
        raise RunFailed(
            f"the data of {name} are not in its root: they were put into {overlay.upper}, and the container writes "
            f"to {upper or roots[-1].fstype}"
        )


def _of_snapshot(engine: DockerClient, host: Host, name: str) -> dict[str, str]:
    """Directories by the names that `GraphDriver` uses, from how containerd mounts the snapshot, if it does."""
    info: dict[str, Any] = engine.info()
    status = dict(pair for pair in info.get("DriverStatus") or () if len(pair) == 2)
    if "snapshotter" not in status.get("driver-type", ""):
        return {}
    containerd = info.get("Containerd") or {}  # from Docker 27 on
    address = containerd.get("Address") or find_socket(host)
    space = (containerd.get("Namespaces") or {}).get("Containers") or _NAMESPACE
    asked = ("snapshots", "--snapshotter", str(info["Driver"]), "mounts", "/", name)
    words = shlex.split(ctr(host, address, *asked, namespace=space))
    options = words[words.index("-o") + 1].split(",") if "-o" in words else []
    named = dict(option.partition("=")[::2] for option in options)
    return {"UpperDir": named.get("upperdir", ""), "LowerDir": named.get("lowerdir", "")}
