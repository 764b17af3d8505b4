"""What network paths require of a host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tare.deployments.pod.requirement import PODS
from tare.requirements import HostPlan, Lack, Requirement
from tare.requirements.rights import SIGHT_OF_LAN
from tare.sites.reading import runs
from tare.study.values import OWN_ADDRESS, POD_NETWORKS, NetworkKind


def _pasta(there: HostPlan) -> Iterator[Lack]:
    if not runs(there.host, ["pasta", "--version"]):
        yield Lack("pasta is not installed", "apt-get install passt")


PASTA = Requirement(
    "pasta",
    needed_by="the network `pasta` of rootless Podman",
    tried_how="`pasta --version`",
    hint="apt-get install passt",
    ask=_pasta,
)


def _ipv6(there: HostPlan) -> Iterator[Lack]:
    asked = any(settings.sut.bind == "::1" for settings in there.served)
    if (asked or not there.uses) and not loopback_has_ipv6(there.host.read("/proc/net/if_inet6") or b""):
        yield Lack("the loopback device has no IPv6 address", "sysctl -w net.ipv6.conf.lo.disable_ipv6=0")


def loopback_has_ipv6(if_inet6: bytes) -> bool:
    """Whether /proc/net/if_inet6 lists ::1."""
    return any(line.split()[0] == b"0" * 31 + b"1" for line in if_inet6.splitlines() if line)


IPV6 = Requirement(
    "IPv6 on loopback",
    needed_by="`sut.bind: ::1`",
    tried_how="/proc/net/if_inet6 lists ::1",
    hint="sysctl -w net.ipv6.conf.lo.disable_ipv6=0",
    ask=_ipv6,
)
NETWORKS: Mapping[NetworkKind, tuple[Requirement, ...]] = {
    **dict.fromkeys(OWN_ADDRESS, (SIGHT_OF_LAN,)),
    **dict.fromkeys(POD_NETWORKS, (PODS,)),
    NetworkKind.PASTA: (PASTA,),
    NetworkKind.HOST: (IPV6,),
}
"""Network → its requirements; others need what their deployment needs. A cluster makes its own."""
