"""The kernel's connection tracking: addresses that it rewrites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tare.deployments import Endpoint
from tare.errors import RunFailed
from tare.sites import Host

_TRACKED = "/proc/net/nf_conntrack"
_TUPLE = re.compile(r"src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)")


@dataclass(frozen=True)
class Tracked:
    """A tracked TCP connection: addresses of the original direction and of the replies."""

    source: Endpoint
    target: Endpoint
    replies_from: Endpoint
    replies_to: Endpoint


def tracked(host: Host) -> tuple[Tracked, ...]:
    """All tracked connections of the host's own namespace; empty if the kernel does not show them."""
    try:
        text = (host.read(_TRACKED) or b"").decode(errors="replace")
    except RunFailed:
        return ()
    return tuple(parse_tracked(text))


def parse_tracked(text: str) -> Iterator[Tracked]:
    """Parse lines that hold the tuple of the original direction and that of the replies."""
    for line in text.splitlines():
        tuples = _TUPLE.findall(line)
        if " tcp " in line and len(tuples) == 2:
            (source, target, sport, dport), (back_from, back_to, back_sport, back_dport) = tuples
            yield Tracked(
                Endpoint(source, int(sport)),
                Endpoint(target, int(dport)),
                Endpoint(back_from, int(back_sport)),
                Endpoint(back_to, int(back_dport)),
            )


def sources(every: tuple[Tracked, ...]) -> Mapping[tuple[Endpoint, Endpoint], Endpoint]:
    """(source, destination) of connections whose source is rewritten → source as it leaves the host."""
    return {(one.source, one.target): one.replies_to for one in every if one.replies_to != one.source}


def translations(every: tuple[Tracked, ...]) -> Mapping[tuple[Endpoint, Endpoint], tuple[Endpoint, Endpoint]]:
    """(source, destination) of connections with a rewritten address → both as the other end sees them."""
    return {
        (one.source, one.target): (one.replies_to, one.replies_from)
        for one in every
        if (one.replies_to, one.replies_from) != (one.source, one.target)
    }
