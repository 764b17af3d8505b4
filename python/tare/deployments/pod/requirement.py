"""What networks of pods that tare makes require of a host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_network

from tare.deployments import POD
from tare.deployments.pod.cni import directory_of
from tare.deployments.pod.pod import SERVICE_POOL
from tare.deployments.pod.rules import version_of
from tare.errors import EnvironmentLacks, HostSilent, RunFailed, TimedOut
from tare.requirements import HostPlan, Lack, Requirement
from tare.sites import Host
from tare.study.values import POD_NETWORKS, SERVICE_NETWORKS, NetworkKind

_CALL_S = 10.0


def _lacks(there: HostPlan) -> Iterator[Lack]:
    """Yield each missing program, or route, that one of the SUTs needs."""
    plugins, proxies, dialled = set[str](), set[str](), False
    for sut in (each.sut for each in there.served):
        if sut.pod is None or sut.deployment == POD or sut.network not in POD_NETWORKS:
            continue  # a cluster has its own
        plugins |= {sut.pod.cni, "host-local"}
        if sut.network is NetworkKind.HOST_PORT:
            plugins.add("portmap")
            proxies.add("iptables")  # called by portmap
        if sut.network in SERVICE_NETWORKS:
            proxies.add(sut.pod.proxy)
        dialled |= sut.network is NetworkKind.CLUSTER_IP
    yield from _missing(there.host, plugins, proxies)
    if dialled:
        yield from _without_route(there.host)


def _missing(host: Host, plugins: Iterable[str], proxies: Iterable[str]) -> Iterator[Lack]:
    for plugin in sorted(plugins):
        try:
            directory_of(host, plugin)
        except EnvironmentLacks as error:
            yield Lack(str(error))
    for proxy in sorted(proxies):
        try:
            version_of(host, proxy)
        except EnvironmentLacks as error:
            yield Lack(str(error))


def _without_route(host: Host) -> Iterator[Lack]:
    """The kernel looks for a route before kube-proxy's rules change a packet's address (nf_nat, hook OUTPUT)."""
    address = str(next(ip_network(SERVICE_POOL).hosts()))
    try:
        done = host.run(["ip", "route", "get", address], timeout_s=_CALL_S, check=False)
    except (HostSilent, TimedOut):
        raise
    except RunFailed:  # without ip(8) no pod is attached, which says so
        return
    if done.code != 0:
        yield Lack(
            f"no route leads to a Service's address ({SERVICE_POOL}), so that no client reaches it",
            "give the host a default route",
        )


PODS = Requirement(
    "pods",
    needed_by="arms with `sut.pod` on a pod's network",
    tried_how="each CNI plug-in's file, `iptables --version` or `nft --version`, `ip route get`",
    hint="apt-get install containernetworking-plugins iptables nftables",
    ask=_lacks,
)
