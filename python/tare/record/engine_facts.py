"""Recorded facts of a container engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class EngineFacts:
    """Facts of a container engine, from its API (`/version`, `/info`) unless stated.

    They are read in each run. If no arm of the study needs the engine, they are read once, when `tare run` begins,
    and its runs go on without the engine.
    """

    engine: str | None = None
    """`docker` or `podman` (behind its Docker-compatible socket)."""
    engine_version: str | None = None
    """Version of the engine."""
    engine_api_version: str | None = None
    """The newest API that it speaks."""
    engine_components: Mapping[str, str | None] | None = None
    """Part → version: containerd, runc, …"""
    engine_storage_driver: str | None = None
    """Storage driver, such as `overlay2`."""
    engine_storage_status: Mapping[str, str] | None = None
    """The driver's status."""
    engine_image_store: str | None = None
    """`graphdriver` or `containerd` (fresh installations of Docker 29 and later); `null` for Podman."""
    engine_data_root: str | None = None
    """Directory of images and containers."""
    engine_cgroup_driver: str | None = None
    """`cgroupfs` or `systemd`."""
    engine_cgroup_version: str | None = None
    """`1` or `2`."""
    engine_runtimes: tuple[str, ...] = ()
    """OCI runtimes."""
    engine_default_runtime: str | None = None
    """The runtime of containers that name none."""
    engine_security: tuple[str, ...] = ()
    """Security options as the engine lists them (seccomp, AppArmor, rootless, …)."""
    engine_rootless: bool | None = None
    """Whether it runs without root."""
    engine_id_maps: Mapping[str, Sequence[Mapping[str, int]] | None] | None = None
    """Podman: mapping of user and group ids (`uidmap`, `gidmap`); `null` if there is none."""
    engine_storage_program: str | None = None
    """`…/fuse-overlayfs` if it provides the overlay; `null`: the kernel's own."""
    engine_cgroup_controllers: tuple[str, ...] | None = None
    """Podman: controllers with which it may set limits; none without root on control groups v1."""
    engine_user_network: str | None = None
    """Podman: version of slirp4netns."""
    engine_live_restore: bool | None = None
    """Whether containers outlive the daemon."""
    engine_firewall: str | None = None
    """`iptables`, `nftables`, … (Docker 28 and later)."""
    engine_logging_driver: str | None = None
    """Default log driver."""
    engine_containers_running: int | None = None
    """All containers that were running, others' included."""
    engine_warnings: tuple[str, ...] = ()
    """The engine's own warnings."""
    engine_userland_proxy: bool | None = None
    """Whether docker-proxy carries published ports; `null` where its process cannot be read."""
    engine_userland_proxy_from: str | None = None
    """Source of that: `argument`, `configuration`, or `default` (neither sets it, and the default is yes)."""
