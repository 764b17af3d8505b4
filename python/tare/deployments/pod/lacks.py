"""Programs that pods need and a host does not have, checked before anything is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tare.deployments.pod.cni import directory_of
from tare.deployments.pod.rules import version_of
from tare.errors import EnvironmentLacks
from tare.sites import Host
from tare.study.model import SutSpec
from tare.study.values import POD_NETWORKS, SERVICE_NETWORKS, NetworkKind


def why_no_pods(host: Host, suts: Iterable[SutSpec]) -> tuple[str, ...]:
    """A sentence for each missing program that one of the SUTs needs."""
    plugins, proxies = set[str](), set[str]()
    for sut in suts:
        if sut.pod is None or sut.network not in POD_NETWORKS:
            continue
        plugins |= {sut.pod.cni, "host-local"}
        if sut.network is NetworkKind.HOST_PORT:
            plugins.add("portmap")
            proxies.add("iptables")  # called by portmap
        if sut.network in SERVICE_NETWORKS:
            proxies.add(sut.pod.proxy)
    return tuple(_missing(host, plugins, proxies))


def _missing(host: Host, plugins: Iterable[str], proxies: Iterable[str]) -> Iterator[str]:
    for plugin in sorted(plugins):
        try:
            directory_of(host, plugin)
        except EnvironmentLacks as error:
            yield str(error)
    for proxy in sorted(proxies):
        try:
            version_of(host, proxy)
        except EnvironmentLacks as error:
            yield str(error)
