"""Cost that a network path adds to a request, or a container to a system call, by a machine's unit costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import stdtrit

from tare.knowledge.predictions.profile import QUANTITIES, Station
from tare.knowledge.unit_costs import FEWEST, LINKS, Load, Path, Quantity, UnitCost, UnitCosts

PLAIN: Path = ("bare", "bare", "host")
"""Baseline of unit costs: server and client bare, at 127.0.0.1."""
ALONE: Path = ("bare", "none", "none")
"""A bare program that is itself the SUT."""
_CONTAINED: Path = ("container", "none", "none")
_HOSTED: Path = ("container", "bare", "host")
"""A container around the server, without its own network."""
_MIRRORED: Mapping[Quantity, Quantity] = {"sut-cpu": "client-cpu", "client-cpu": "sut-cpu"}
_FROM_HOST = frozenset({"host", "published-loopback", "published-address", *LINKS})
"""Networks that a client in a container reaches from its host's network, as their names say."""
_PROXIED = "published-loopback"
_SHARED = "shared"
"""The client joins the namespace of a container: its loopback interface costs what the host's does."""


@dataclass(frozen=True)
class PathCosts:
    """Costs of a request on one path. `a_kib`: CPU time of a KiB, if known well enough to be more than noise.

    `waited`: added time, and `alone`: added CPU time of the server, with one request in flight; `proxied`: whether
    docker-proxy causes the cost at the server; it may run on any CPU.
    """

    added: Mapping[Station, UnitCost | None]
    a_kib: Mapping[Station, UnitCost | None]
    waited: UnitCost
    alone: UnitCost | None
    proxied: bool = False

    def us(self, station: Station, shift: float) -> float:
        """CPU time of a request at full load; 0 if unknown."""
        cost = self.added.get(station)
        return 0.0 if cost is None else shifted(cost, shift)


def path_costs(path: Path, costs: UnitCosts) -> PathCosts | str:
    """Return the unit costs of a path, or a clause that says what is missing."""
    if path in (PLAIN, ALONE):
        nothing = UnitCost(
            deployment="bare", client="bare", network="host", load="alone", quantity="time",
            us=0.0, se=0.0, low=0.0, high=0.0, n=FEWEST,
        )  # fmt: skip
        return PathCosts(dict.fromkeys(QUANTITIES, nothing), {}, nothing, nothing)
    if path[0] == "container" and path[2] == _SHARED:
        return path_costs((path[0], path[1], PLAIN[2]), costs)
    if path == _CONTAINED:
        return _of_calls(costs)
    added = {name: _cost(costs, path, "busy", quantity) for name, quantity in QUANTITIES.items()}
    waited, alone = _cost(costs, path, "alone", "time"), _cost(costs, path, "alone", "sut-cpu")
    if waited is None or not any(added.values()):
        return f"there is no unit cost for {' / '.join(path)}"
    if any(each.se is None for each in (waited, *added.values()) if each is not None):
        return f"the unit costs of {' / '.join(path)} have fewer than {FEWEST} blocks"
    large: Load = "large"
    a_kib = {name: _cost(costs, path, large, quantity, per_kib=True) for name, quantity in QUANTITIES.items()}
    return PathCosts(
        added,
        {name: each for name, each in a_kib.items() if each is None or each.se is not None},
        waited,
        None if alone is None or alone.se is None else alone,
        proxied=path[2] == _PROXIED,
    )


def _of_calls(costs: UnitCosts) -> PathCosts | str:
    """Return what a container adds to a system call of a program that is itself the SUT, or what is missing."""
    call = _of_call(costs)
    if call is None:
        return "what a container adds to a system call was not measured: `tare weigh` does"
    return PathCosts({"machine": call, "sut": call}, {}, call, call)


def _of_call(costs: UnitCosts) -> UnitCost | None:
    """Return the added cost of a system call in a container with the engine's default seccomp filter."""
    calls = {(each.where, each.seccomp): each for each in costs.events if each.event == "syscall"}
    bare, inside = calls.get(("bare", None)), calls.get(("container", "default"))
    if bare is None or inside is None:
        return None
    us = (inside.ns - bare.ns) / 1000
    se = (
        math.hypot(*((each.high - each.low) / 2 / float(stdtrit(each.n - 1, 0.975)) for each in (bare, inside)))
        / 1000
    )
    n = min(bare.n, inside.n)
    reach = float(stdtrit(n - 1, 0.975)) * se
    return UnitCost(
        deployment="container", client="none", network="none", load="alone", quantity="sut-cpu",
        us=us, se=se, low=us - reach, high=us + reach, n=n,
    )  # fmt: skip


def _cost(
    costs: UnitCosts, path: Path, load: Load, quantity: Quantity, *, per_kib: bool = False
) -> UnitCost | None:
    """Return one cost of a path; a client in a container on its host's network adds that container's cost.

    A container adds as much around the client as around the server, since both ends make the same calls.
    """
    if path[1] != "container" or path[2] not in _FROM_HOST:
        return _of_server(costs, path, load, quantity, per_kib=per_kib)
    client = costs.of(_HOSTED, load, _MIRRORED.get(quantity, quantity), per_kib=per_kib)
    server = path[0], "bare", path[2]
    rest = None if server == PLAIN else _of_server(costs, server, load, quantity, per_kib=per_kib)
    if client is None or (rest is None and server != PLAIN):
        return None
    return client if rest is None else _together(client, rest)


def _of_server(
    costs: UnitCosts, path: Path, load: Load, quantity: Quantity, *, per_kib: bool = False
) -> UnitCost | None:
    """Do the same without the client; a path over a link costs the container on the host's network plus the link.

    Between hosts a link costs the client's side nothing, so only the container's cost counts there.
    """
    if path[2] not in LINKS:
        return costs.of(path, load, quantity, per_kib=per_kib)
    link = "bare", "bare", path[2]
    inside = costs.of((path[0], path[1], PLAIN[2]), load, quantity, per_kib=per_kib)
    own = costs.of(link, load, quantity, per_kib=per_kib)
    if own is None and quantity == "client-cpu" and costs.of(link, load, "sut-cpu", per_kib=per_kib):
        return inside
    return None if inside is None or own is None else _together(inside, own)


def _together(inside: UnitCost, link: UnitCost) -> UnitCost:
    """Add two costs that were measured separately, so that their errors are independent."""
    us, n = inside.us + link.us, min(inside.n, link.n)
    se = None if inside.se is None or link.se is None else math.hypot(inside.se, link.se)
    reach = None if se is None else float(stdtrit(n - 1, 0.975)) * se
    return inside.model_copy(
        update={
            "network": link.network,
            "us": us,
            "se": se,
            "low": None if reach is None else us - reach,
            "high": None if reach is None else us + reach,
            "n": n,
        }
    )


def shifted(cost: UnitCost, shift: float) -> float:
    """Shift a cost by standard errors, but not below 0. Raises `ValueError` without a standard error."""
    if shift and cost.se is None:
        raise ValueError(f"a cost of {cost.n} blocks has no standard error")
    return max(0.0, cost.us + (shift * cost.se if cost.se is not None else 0.0))
