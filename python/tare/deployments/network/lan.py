"""A run's network with the engine's driver `macvlan` or `ipvlan`, on the interface that reaches the other hosts.

It takes the name of the run's bridge, which is then not made on this host, and is removed in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docker.errors import APIError
from docker.types import EndpointConfig, IPAMConfig, IPAMPool

from tare.deployments import Lan
from tare.deployments.network.bridge import network_name
from tare.errors import EnvironmentLacks
from tare.record.network_path import Hop
from tare.sites import Host
from tare.sites.engine import labels
from tare.sites.ledger import Kind, Ledger
from tare.study.values import NetworkKind

if TYPE_CHECKING:
    from docker import DockerClient

_MODES = {NetworkKind.MACVLAN: "bridge", NetworkKind.IPVLAN: "l2"}
_CALL_S = 10.0


def attach_to_lan(  # noqa: PLR0913, PLR0917 - everything that defines a network
    engine: DockerClient, ledger: Ledger, host_name: str, parent: str, kind: NetworkKind, lan: Lan
) -> dict[str, Any]:
    """Make the network; return the options that attach a container to it with its address."""
    name = network_name(parent)
    ledger.note(Kind.NETWORK, name, host=host_name)
    try:
        engine.networks.create(
            name,
            driver=kind.value,
            options={"parent": lan.device, f"{kind.value}_mode": _MODES[kind]},
            ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=lan.subnet)]),
            labels=labels(parent, ledger.owner_on(host_name)),
        )
    except APIError as error:
        raise EnvironmentLacks(
            f"the engine on {host_name} cannot make a network {kind.value} on {lan.device}: {error.explanation}",
            hint="the kernel needs the driver, and no other network of the engine may have that subnet",
        ) from error
    endpoint = EndpointConfig(engine.api.api_version, ipv4_address=lan.address)
    return {"network": name, "networking_config": {name: endpoint}}


def link_of(host: Host, pid: int) -> Hop | None:
    """Kind of link of a process's network namespace on the network between hosts, as the kernel reports it."""
    argv = ["nsenter", "--target", str(pid), "--net", "ip", "-details", "-oneline", "link", "show"]
    lines = host.run(argv, timeout_s=_CALL_S, check=False).text.splitlines()
    for hop in (Hop.MACVLAN, Hop.IPVLAN):
        if any(f" {hop.value} mode " in " ".join(line.split()) for line in lines):
            return hop
    return None
