"""Small networks of tare's own on a host: four addresses each, for a link with one end here and one elsewhere."""

from __future__ import annotations

import hashlib
import ipaddress

from tare.errors import EnvironmentLacks
from tare.sites import Host

_CALL_S = 30.0
_POOL = ipaddress.IPv4Network("10.231.0.0/16")
_TRIES = 64


def free_network(host: Host, name: str) -> ipaddress.IPv4Network:
    """One that none of the host's addresses lies in, beginning where the name of what it is for says."""
    listed = host.run(["ip", "-4", "-oneline", "address", "show"], timeout_s=_CALL_S).text
    words = [line.split() for line in listed.splitlines()]
    taken = [ipaddress.IPv4Interface(line[3]).network for line in words if len(line) > 3]
    first = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    for step in range(_TRIES):
        start = int(_POOL.network_address) + 4 * ((first + step) % (_POOL.num_addresses // 4))
        network = ipaddress.IPv4Network((start, 30))
        if not any(network.overlaps(each) for each in taken):
            return network
    raise EnvironmentLacks(f"no part of {_POOL} is free for {name}", hint="ip address show")
