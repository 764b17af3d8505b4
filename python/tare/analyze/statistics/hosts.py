"""Separate effects of hosts and arms, if server and client swap hosts every other block. Pure functions.

A block's log ratio is the arm's effect, plus its deviation on the server's host, plus noise:
d_bj = mu + h_b + e_bj, with h_1 + h_2 = 0. A host that is faster for all arms alike cancels out in the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from tare.analyze.estimate import Estimate, HostEffect, OverHosts
from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.protocols.anytime import NO_SPREAD

METHOD = "swapped-hosts-log-ratio-t"
MACHINES = "adjacent-blocks-log-ratio-t"
FEWEST_EACH = 2
"""Fewest blocks with the server on each host; with fewer, a host cannot be told from an outlier."""


def over_hosts(ratios: Mapping[str, Sequence[float]], confidence: float, pooled: Estimate) -> OverHosts | None:
    """Effect from ratios arm/baseline by the server's host, all above 0; `None` unless there are two hosts.

    With m_i the mean of the n_i log ratios on host i and s² their pooled variance: mean = (m_1 + m_2) / 2,
    SE² = s² (1 / n_1 + 1 / n_2) / 4, and t(n_1 + n_2 - 2). Both hosts have the same weight, however many blocks
    they have, so deviations of a host cancel out (a two-way layout, Montgomery, Design and Analysis of
    Experiments). `pooled`: the estimate from all blocks, as if hosts made no difference.
    """
    if len(ratios) != 2:
        return None
    logs = {host: np.log(np.asarray(each, dtype=float)) for host, each in sorted(ratios.items())}
    hosts = tuple(_host(host, each, confidence) for host, each in logs.items())
    first, second = logs.values()
    mean, apart = float((first.mean() + second.mean()) / 2), float(second.mean() - first.mean())
    n, freedom = len(first) + len(second), len(first) + len(second) - 2

    def without(why: str) -> OverHosts:
        none = Estimate(math.expm1(mean), None, None, n, confidence, METHOD, why)
        return OverHosts(none, hosts, mean, None, freedom, math.expm1(apart), None, pooled)

    if min(len(first), len(second)) < FEWEST_EACH:
        return without(f"an interval needs {FEWEST_EACH} blocks with the server on each host")
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in (first, second)) / freedom
    spread = math.sqrt(within * (1 / len(first) + 1 / len(second)))
    if spread < NO_SPREAD:
        return without("the same ratio in every block of a host, so the spread is unknown")
    error = spread / 2
    reach = float(stdtrit(freedom, 0.5 + confidence / 2)) * error
    estimate = Estimate(math.expm1(mean), math.expm1(mean - reach), math.expm1(mean + reach), n, confidence, METHOD)
    p = 2 * float(stdtr(freedom, -abs(apart) / spread))
    return OverHosts(estimate, hosts, mean, error, freedom, math.expm1(apart), p, pooled)


@dataclass(frozen=True)
class Placed:
    """A value above 0 of one run, and whether server and client were swapped."""

    value: float
    turned: bool


def machines_apart(series: Sequence[Sequence[Placed]]) -> Estimate | None:
    """Relative throughput with server and client swapped, against their placement in the sites file.

    `series`: runs of each arm, in the order of time. Two successive runs with different placement give a log ratio;
    its mean over the arms is one unit, and the paired t is over units. `None` without units.
    """
    of_arms = [_turns(each) for each in series]
    units = [
        math.exp(float(np.mean([turns[n] for turns in of_arms if n < len(turns)])))
        for n in range(max(map(len, of_arms), default=0))
    ]
    return replace(paired_log_ratio_t(units), method=MACHINES) if units else None


def _turns(runs: Sequence[Placed]) -> list[float]:
    """Log ratios swapped/own of pairs of runs; a run whose successor has the same placement has no pair."""
    found, left = [], list(runs)
    while len(left) > 1:
        one, other, *_ = left
        if one.turned == other.turned:
            left = left[1:]
            continue
        changed, own = (other, one) if other.turned else (one, other)
        found.append(math.log(changed.value / own.value))
        left = left[2:]
    return found


def _host(host: str, logs: NDArray[np.float64], confidence: float) -> HostEffect:
    own = paired_log_ratio_t([float(each) for each in np.exp(logs)], confidence)
    return HostEffect(host, len(logs), math.expm1(float(logs.mean())), own.low, own.high)
