"""tare's own bridge, one for each run, and small subnets for links."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docker.errors import APIError, NotFound
from requests.exceptions import RequestException

from tare.errors import EngineSilent, EnvironmentLacks, RunFailed
from tare.sites import Host
from tare.sites.engine import in_words, labels
from tare.sites.engines import parse_entry
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import RUN_LABEL

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.networks import Network

_CALL_S = 30.0
_POOL = ipaddress.IPv4Network("10.231.0.0/16")
_TRIES = 64


def free_network(
    host: Host, name: str, prefix: int = 30, pool: ipaddress.IPv4Network = _POOL
) -> ipaddress.IPv4Network:
    """A free subnet of `pool` for `name`: no address of the host lies in it.

    The search starts at a hash of the name. No route leads to a part of it either, since other machines may be
    there. Wide routes, such as one to all of 10.0.0.0/8, do not count.
    """
    listed = host.run(["ip", "-4", "-oneline", "address", "show"], timeout_s=_CALL_S).text
    words = [line.split() for line in listed.splitlines()]
    taken = [ipaddress.IPv4Interface(line[3]).network for line in words if len(line) > 3]
    taken += [each for each in _routes(host) if each.prefixlen >= prefix]
    first = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    for step in range(_TRIES):
        size = 1 << (32 - prefix)
        start = int(pool.network_address) + size * ((first + step) % (pool.num_addresses // size))
        network = ipaddress.IPv4Network((start, prefix))
        if not any(network.overlaps(each) for each in taken):
            return network
    raise EnvironmentLacks(f"no part of {pool} is free for {name}", hint="ip address show; ip route show")


def _routes(host: Host) -> Iterator[ipaddress.IPv4Network]:
    """Destinations of the host's routes through any gateway, without `default` and kinds such as `blackhole`."""
    listed = host.run(["ip", "-4", "route", "show"], timeout_s=_CALL_S).text
    for line in listed.splitlines():
        with suppress(ValueError):
            yield ipaddress.IPv4Network(line.split()[0])


@dataclass(frozen=True)
class Bridge:
    """A run's network. `gateway`: the host's own address on it."""

    name: str
    gateway: str


def network_name(parent: str) -> str:
    """Name of a run's network: `tare/RUN` → `tare-RUN`."""
    return parent.replace("/", "-")


def ensure_bridge(engine: DockerClient, ledger: Ledger, host_name: str, parent: str) -> Bridge:
    """Return the run's bridge; make it if needed. A network of this name that is not tare's is refused."""
    name = network_name(parent)
    ledger.note(Kind.NETWORK, name, host=host_name)
    try:
        network = engine.networks.get(name)
    except NotFound:
        try:
            marks = labels(parent, ledger.owner_on(host_name))
            network = engine.networks.create(name, driver="bridge", check_duplicate=True, labels=marks)
            network.reload()
        except APIError as error:
            raise EnvironmentLacks(
                f"the engine cannot make a bridge network: {error.explanation}",
                hint="its address pools may be used up: docker network ls",
            ) from error
    if not is_ours(network):
        ledger.forget(Kind.NETWORK, name, host=host_name)
        raise EnvironmentLacks(
            f"a network {name} exists and is not tare's", hint=f"rename or remove it: docker network rm {name}"
        )
    return Bridge(name, _gateway(network))


def remove_bridge(engine: DockerClient, ledger: Ledger, host_name: str, parent: str) -> None:
    """Remove the run's bridge if it exists and is tare's. An engine that made none need not answer."""
    name = network_name(parent)
    try:
        network = engine.networks.get(name)
        if is_ours(network):
            network.remove()
    except NotFound:
        pass
    except APIError as error:
        raise RunFailed(f"the network {name} cannot be removed: {error.explanation}") from error
    except RequestException as error:
        if not _is_noted(ledger, host_name, name):
            return
        what = f"the engine on {host_name} does not answer for the network {name}: {in_words(error)}"
        raise EngineSilent(what) from error
    ledger.forget(Kind.NETWORK, name, host=host_name)


def _is_noted(ledger: Ledger, host_name: str, name: str) -> bool:
    noted = (entry for entry in ledger.entries() if entry.kind is Kind.NETWORK and entry.host == host_name)
    return any(parse_entry(entry.ident).ident == name for entry in noted)


def is_ours(network: Network) -> bool:
    """Whether a network is tare's, by its label and never by its name."""
    return RUN_LABEL in (network.attrs.get("Labels") or {})


def _gateway(network: Network) -> str:
    for config in (network.attrs.get("IPAM") or {}).get("Config") or []:
        if ":" not in config.get("Subnet", "") and config.get("Gateway"):
            return str(config["Gateway"]).partition("/")[0]
    raise EnvironmentLacks(
        f"the engine gave the network {network.name} no IPv4 gateway", hint="check the engine's address pools"
    )
