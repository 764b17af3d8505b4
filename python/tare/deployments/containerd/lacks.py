"""Why containerd by itself cannot be used, checked before anything is started."""

from __future__ import annotations

from collections.abc import Collection

from tare.deployments.containerd.ctr import ctr, find_socket
from tare.deployments.containerd.network import PLUGINS, PROGRAMS
from tare.deployments.pod.cni import directory_of
from tare.errors import EnvironmentLacks, TareError
from tare.sites import Host
from tare.sites.ssh.host import SshHost
from tare.study.values import NetworkKind

FAR = "tare can make containerd containers only on the machine it runs on; use `container`, or leave `--sites` out"
_QUICK_S = 10.0


def why_no_containerd(host: Host, networks: Collection[NetworkKind] = ()) -> str | None:
    """Why containerd cannot make containers on `host`; `None` if it can.

    `networks`: networks of these containers.
    """
    if isinstance(host, SshHost):
        return FAR
    try:
        ctr(host, find_socket(host), "version")
        if NetworkKind.BRIDGE in networks:
            _can_attach(host)
    except TareError as error:
        return str(error)
    return None


def _can_attach(host: Host) -> None:
    for plugin in PLUGINS:
        directory_of(host, plugin)
    for program in PROGRAMS:
        if host.run(["sh", "-c", f"command -v {program}"], timeout_s=_QUICK_S, check=False).code != 0:
            raise EnvironmentLacks(f"{program} is missing on {host.name}", hint="install util-linux and iproute2")
