"""What one network path adds to a request, by the unit costs of a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import stdtrit

from tare.knowledge.predictions.profile import QUANTITIES, Station
from tare.knowledge.unit_costs import FEWEST, LINKS, Load, Path, Quantity, UnitCost, UnitCosts

PLAIN: Path = ("bare", "bare", "host")
"""Server and client bare, at 127.0.0.1: what unit costs are told against."""
_PROXIED = "published-loopback"


@dataclass(frozen=True)
class PathCosts:
    """Of a request on one path. `a_kib`: CPU time of a KiB, where it is known well enough to be no noise alone.

    `waited`: added time and `alone`: added CPU time of the server, where one request at a time is under way;
    `proxied`: whether what is added at the server is a docker-proxy's, which is not kept to the server's CPUs.
    """

    added: Mapping[Station, UnitCost | None]
    a_kib: Mapping[Station, UnitCost | None]
    waited: UnitCost
    alone: UnitCost | None
    proxied: bool = False

    def us(self, station: Station, shift: float) -> float:
        """CPU time of a request at full load; 0 where it is not known."""
        cost = self.added.get(station)
        return 0.0 if cost is None else shifted(cost, shift)


def path_costs(path: Path, costs: UnitCosts) -> PathCosts | str:
    """The unit costs of a path, or a clause that says what is missing."""
    if path == PLAIN:
        nothing = UnitCost(
            deployment="bare", client="bare", network="host", load="alone", quantity="time",
            us=0.0, se=0.0, low=0.0, high=0.0, n=FEWEST,
        )  # fmt: skip
        return PathCosts(dict.fromkeys(QUANTITIES, nothing), {}, nothing, nothing)
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


def _cost(
    costs: UnitCosts, path: Path, load: Load, quantity: Quantity, *, per_kib: bool = False
) -> UnitCost | None:
    """One cost of a path; of a path over a link the container's on the host's network and the link's, together.

    Between hosts a link costs the client's side nothing, so there the container's stands alone.
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
    """Sum of two costs that were measured apart: their errors are independent."""
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
    """Never less than nothing: no path gives time back. Raises `ValueError` for a cost without a standard error."""
    if shift and cost.se is None:
        raise ValueError(f"a cost of {cost.n} blocks has no standard error")
    return max(0.0, cost.us + (shift * cost.se if cost.se is not None else 0.0))
