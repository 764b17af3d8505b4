"""What the deployment `containerd` requires of a host."""

from __future__ import annotations

from collections.abc import Iterator

from tare.deployments.containerd.ctr import ADDRESS, ctr, find_socket
from tare.deployments.containerd.network import PLUGINS, PROGRAMS
from tare.deployments.pod.cni import directory_of
from tare.errors import EnvironmentLacks, TareError
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host
from tare.study.values import NetworkKind

FAR = "tare can make containerd containers only on the machine it runs on; use `container`, or leave `--sites` out"
_QUICK_S = 10.0


def _lacks(there: HostPlan) -> Iterator[Lack]:
    if there.host.is_remote:
        yield Lack(FAR)
        return
    try:
        ctr(there.host, find_socket(there.host), "version")
        if any(placed.network is NetworkKind.BRIDGE for placed in there.placements):
            _can_attach(there.host)
    except TareError as error:
        yield Lack(str(error))


def _can_attach(host: Host) -> None:
    for plugin in PLUGINS:
        directory_of(host, plugin)
    for program in PROGRAMS:
        if host.run(["sh", "-c", f"command -v {program}"], timeout_s=_QUICK_S, check=False).code != 0:
            raise EnvironmentLacks(f"{program} is missing on {host.name}", hint="install util-linux and iproute2")


CONTAINERD_SERVICE = Requirement(
    "containerd",
    needed_by="arms with `deployment: containerd`",
    tried_how="`ctr version` at its socket; for a bridge, CNI plug-ins and programs",
    hint=f"start containerd or Docker, or name another socket in {ADDRESS}",
    ask=_lacks,
)
