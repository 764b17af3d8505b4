"""Queueing networks: effect of a change at one station on throughput or time. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_STEPS = 60
"""Steps of a bisection: each halves the interval."""


def throughput(customers: int, demands: Sequence[float], thinking: float = 0.0) -> float:
    """Exact mean value analysis of one class (Reiser & Lavenberg, JACM 27(2), 1980): operations a unit of time.

    `demands`: time of an operation at each station, `thinking`: outside of all of them. Raises `ValueError` where
    an operation takes no time at all.
    """
    if customers < 1 or sum(demands) + thinking <= 0:
        raise ValueError("a closed network needs a customer, and an operation that takes time")
    queues, rate = [0.0] * len(demands), 0.0
    for present in range(1, customers + 1):
        times = [demand * (1 + queue) for demand, queue in zip(demands, queues, strict=True)]
        rate = present / (thinking + sum(times))
        queues = [rate * each for each in times]
    return rate


def thinking_time(customers: int, demands: Sequence[float], per_unit: float) -> float:
    """Time outside all stations at which the network has this throughput; 0 if it cannot reach it."""
    return _solved(lambda time: throughput(customers, demands, time), 0.0, customers / per_unit, per_unit)


def slowest_demand(customers: int, others: Sequence[float], least: float, per_unit: float) -> float:
    """Time at an additional station at which the network has this throughput; at least `least`."""
    return _solved(lambda time: throughput(customers, [*others, time]), least, customers / per_unit, per_unit)


def _solved(rate: Callable[[float], float], low: float, high: float, wanted: float) -> float:
    """Solve for the time at which a rate, falling with time, is as wanted; `low` if it is lower even there."""
    if rate(low) <= wanted:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(middle) > wanted else (low, middle)
    return (low + high) / 2


MOST_USED = 0.98
"""Utilisation beyond which the modelled queue grows no more: a real one would grow for the whole run."""


def sojourn(demand: float, used: float, cpus: float = 1.0) -> float:
    """Mean time at a station of an open network: the demand and the time in the queue for so many CPUs (M/M/c).

    `used`: share of all CPUs in use. With a fractional number of CPUs, as under a quota, whole CPUs count, at least
    one.
    """
    servers, share = max(1, int(cpus + 1e-9)), min(used, MOST_USED)
    return demand * (1 + _delayed(servers, share) / (servers * (1 - share)))


def _delayed(servers: int, used: float) -> float:
    """Erlang's C formula, by the recursion of his B formula: the share of arrivals that find all servers busy."""
    offered, blocked = servers * used, 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - used * (1 - blocked))


def filled(lots: Sequence[tuple[float, float]], more: float) -> float:
    """Utilisation up to which `more` CPUs' work fills the least used of some groups of CPUs.

    `lots`: CPUs of each group, and the share of them in use. Without work: the least share.
    """
    ordered = sorted(lots, key=lambda lot: lot[1])
    cpus, level = 0.0, ordered[0][1]
    for index, (size, share) in enumerate(ordered):
        cpus, level = cpus + size, share
        higher = ordered[index + 1][1] if index + 1 < len(ordered) else math.inf
        if more <= (higher - level) * cpus:
            break
        more -= (higher - level) * cpus
    return level + more / cpus
