"""What macvlan and ipvlan add to a request on this machine, by calibrate/link_costs.py.

Between hosts, such a link exists only on the server's host, and the baseline is a bare server on the same wire. A
veth pair represents the wire. There, the sender's CPU does the receiver's half, so everything that the link adds on
both sides is charged to the server. On one host, as with a pod's macvlan, each side has its own part.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from tare.deployments.network.bridge import free_network
from tare.errors import RunFailed, TareError
from tare.knowledge.event_costs import EventCost, event_cost
from tare.knowledge.unit_costs import LOADS, Quantity, UnitCost, costs_per_kib, unit_cost
from tare.sites import Host
from tare.sites.binaries import LOAD, find

PROGRAM = Path(__file__).parent.parent / "calibrate" / "link_costs.py"
REPEATS, SPENT_S = 8, 40.0
"""After `SPENT_S` no further repeat begins, so that `tare weigh` stays within its ten minutes."""
WITHOUT: Mapping[str, str] = {"macvlan": "wire", "ipvlan": "wire", "pod-macvlan": "loopback"}
"""Link → its baseline, the path without it."""
_BETWEEN_HOSTS = frozenset({"macvlan", "ipvlan"})
_CALL_S, _TIME_S, _PREFIX = 10.0, 120.0, 27
_Figures = Mapping[str, Sequence[float]]


def link_costs(host: Host) -> tuple[tuple[UnitCost, ...], tuple[EventCost, ...], tuple[str, ...]]:
    """Measure the costs of a request and of a packet; a `TareError` becomes one of the returned lacks."""
    try:
        if host.run(["id", "-u"], timeout_s=_CALL_S).text.strip() != "0":
            return (), (), ("macvlan, ipvlan: root is needed to make network links",)
        load = find(host, LOAD)
        if load is None:
            return (), (), (f"macvlan, ipvlan: tare-load is missing; {LOAD.hint}",)
        subnet = free_network(host, f"links-{uuid4().hex}", _PREFIX)
        argv = [sys.executable, "-I", "-S", str(PROGRAM), str(REPEATS), str(SPENT_S), load, str(subnet)]
        return costs_of_links(host.run(argv, timeout_s=_TIME_S).stdout)
    except TareError as error:
        return (), (), (f"macvlan, ipvlan: {error}",)


def costs_of_links(printed: bytes) -> tuple[tuple[UnitCost, ...], tuple[EventCost, ...], tuple[str, ...]]:
    """From what the program printed. Raises `RunFailed` where that is not whole."""
    try:
        tree = json.loads(printed)
        requests = tree["requests"]
        found = [
            cost
            for link, without in WITHOUT.items()
            if link in requests and without in requests
            for cost in _of_link(link, requests[link], requests[without])
        ]
        packets = tuple(
            event_cost("packet", ways, where="bare", link=name) for name, ways in tree["packets"].items()
        )
        return (*found, *costs_per_kib(found)), packets, tuple(map(str, tree["lacks"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RunFailed(f"what {PROGRAM.name} printed is not whole: {error}") from error


def _of_link(link: str, on_link: Mapping[str, Any], without: Mapping[str, Any]) -> Iterator[UnitCost]:
    for name, load in LOADS.items():
        mine, theirs = (_quantities(of[name], between=link in _BETWEEN_HOSTS) for of in (on_link, without))
        for quantity, values in mine.items():
            more = [with_it - bare for with_it, bare in zip(values, theirs[quantity], strict=True)]
            yield unit_cost(("bare", "bare", link), load, quantity, more)


def _quantities(figures: _Figures, *, between: bool) -> Mapping[Quantity, Sequence[float]]:
    """Return microseconds per request for every repeat; `between`: on the server's host, between hosts."""
    server, client, time = ([ns / 1e3 for ns in figures[name]] for name in ("server", "client", "time"))
    both = [one + other for one, other in zip(server, client, strict=True)]
    if between:
        return {"machine-cpu": both, "sut-cpu": both, "time": time}
    return {"machine-cpu": both, "sut-cpu": server, "client-cpu": client, "time": time}
