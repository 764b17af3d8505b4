"""Cost of an arm at a constant rate, in CPU time and mean latency, by an open queueing network.

The CPUs of a side are a station that many requests share. An operation that needs D of one CPU takes D / (1 - u)
there, where u is the share in use (Poisson arrivals; exact for processor sharing with any distribution of D, and
for first come, first served if D is exponential: Baskett, Chandy, Muntz & Palacios, JACM 22(2), 1975). A station of
several CPUs behaves like M/M/c. The model starts from the latency of the bare runs; the part that it does not
explain stays constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tare.knowledge.predictions.path_costs import PathCosts, shifted
from tare.knowledge.predictions.profile import Demand, Profile
from tare.knowledge.predictions.queueing import filled, sojourn
from tare.knowledge.predictions.storage_costs import StorageCosts, moved

_LEAST = 0.05
"""Smallest share of the bare latency that remains with any storage: the part outside the disk."""
Side = Literal["sut", "client"]
_SIDES: tuple[Side, ...] = ("sut", "client")


@dataclass(frozen=True)
class Use:
    """Utilisation of the server's CPUs, of the client's, and of those where docker-proxy finds room."""

    sut: float
    client: float
    proxy: float

    @property
    def keeps_up(self) -> bool:
        """Whether every station can do its work."""
        return max(self.sut, self.client, self.proxy) < 1


def cpu_at_rate(profile: Profile, path: PathCosts, storage: StorageCosts | None = None, *, shift: float) -> float:
    """Log ratio of the CPU time of an operation.

    If CPUs are busy for a share u of the time, that share of the requests finds them busy and costs as much as at
    full load; the others wake them up and cost as much as a request alone.
    """
    assert profile.cpu_us is not None  # noqa: S101 - the caller has seen to it
    busy, alone = path.added.get("sut"), path.alone
    awake = _awake(use_of(profile, path, shift=shift), path)
    known = [(share, cost) for share, cost in ((awake, busy), (1 - awake, alone)) if cost is not None]
    weight = sum(share for share, _ in known)
    a_request = sum(share * shifted(cost, shift) for share, cost in known) / weight if weight else 0.0
    more = profile.requests * a_request
    a_kib = path.a_kib.get("sut")
    more += 0.0 if profile.kib is None or a_kib is None else profile.kib * shifted(a_kib, shift)
    then = profile if storage is None else moved(profile, storage, shift)
    assert then.cpu_us is not None  # noqa: S101 - it is if the profile's is
    return math.log((then.cpu_us + more) / profile.cpu_us)


def latency_at_rate(
    profile: Profile, path: PathCosts, storage: StorageCosts | None = None, *, shift: float = 0.0
) -> float:
    """Log ratio of the mean latency of an operation."""
    assert profile.latency_us is not None  # noqa: S101 - the caller has seen to it
    others = others_share(profile)
    there = profile if storage is None else moved(profile, storage, shift)
    before, after = use_of(profile, None, others=others), use_of(there, path, others=others, shift=shift)
    bare = _sojourns(profile, before)
    # CPU time that an operation does not wait for, of other threads or after the reply, queues no operation.
    waited_for = min(1.0, profile.latency_us / bare) if bare else 0.0
    more = waited_for * (_sojourns(there, after) - bare)
    awake = _awake(use_of(there, path, shift=shift), path)
    more += profile.requests * _a_request(profile, path, after, awake, waited_for, shift)
    if storage is not None and profile.disk is not None:
        more += profile.disk.us * (storage.of(profile.disk.written, shift) - 1)
    return math.log(max(profile.latency_us + more, _LEAST * profile.latency_us) / profile.latency_us)


def _sojourns(profile: Profile, use: Use) -> float:
    """Time of an operation at both sides together."""
    own = {name: profile.stations[name] for name in _SIDES if name in profile.stations}
    return sum(sojourn(each.us, getattr(use, name), each.cpus) for name, each in own.items())


def _a_request(  # noqa: PLR0913, PLR0917 - a path, and the state of what it passes
    profile: Profile, path: PathCosts, after: Use, awake: float, waited_for: float, shift: float
) -> float:
    """Time that a path adds to one request: its CPU time, the queues for it, and the wake-up of a sleeping server.

    Unit costs show that a request alone waits for its CPU time. The queues are those of server and client; an
    operation waits for the share `waited_for` of them.
    """
    sut, client = path.us("sut", shift), path.us("client", shift)
    asleep = (1 - awake) * max(0.0, shifted(path.waited, shift) - sut - client)
    cpus = {name: profile.stations[name].cpus if name in profile.stations else 1.0 for name in _SIDES}
    serving = sojourn(sut, after.proxy) if path.proxied else sojourn(sut, after.sut, cpus["sut"])
    queues = serving + sojourn(client, after.client, cpus["client"]) - sut - client
    return sut + client + waited_for * queues + asleep


def _awake(use: Use, path: PathCosts) -> float:
    """Share of requests that find the CPUs of the serving program busy."""
    return min(1.0, use.proxy if path.proxied else use.sut)


def carries(profile: Profile, path: PathCosts, *, shift: float = 0.0) -> bool | None:
    """Whether the CPUs can do the work of each operation on a path, at this rate and beside other programs.

    `None` if bare runs and others already fill them although the bare runs kept up: then others ran elsewhere.
    """
    others = others_share(profile)
    if not use_of(profile, None, others=others).keeps_up:
        return None
    return use_of(profile, path, others=others, shift=shift).keeps_up


def others_share(profile: Profile) -> float:
    """Share of the machine's CPU time charged to neither server nor client; 0 if one of them is unknown.

    It includes the kernel's threads (ksoftirqd, writeback, a file system's journal), even if they work for the
    server.
    """
    machine = profile.stations.get("machine")
    if machine is None or any(name not in profile.stations for name in _SIDES):
        return 0.0
    own = sum(_cpus(profile.stations[name]) for name in _SIDES if name in profile.stations)
    return max(0.0, machine.used - own / machine.cpus)


def use_of(profile: Profile, path: PathCosts | None, *, others: float = 0.0, shift: float = 0.0) -> Use:
    """CPUs in use at this rate, by the cost of requests at full load; `others`: share of each that others use.

    docker-proxy may run on every CPU of the machine, and the scheduler puts it where there is room: it fills the
    least used CPUs first. If server and client share CPUs, the whole machine is one station.
    """
    lots: dict[Side, Demand] = {name: profile.stations[name] for name in _SIDES if name in profile.stations}
    proxied = path is not None and path.proxied
    a_us = profile.per_s * profile.requests / 1e6
    used: dict[Side, float] = {}
    for name, each in lots.items():
        added = 0.0 if path is None or (proxied and name == "sut") else a_us * path.us(name, shift)
        used[name] = _cpus(each) + added
    roaming = a_us * path.us("sut", shift) if path is not None and proxied else 0.0
    room = profile.stations["machine"].cpus if "machine" in profile.stations else sum(e.cpus for e in lots.values())
    return _shares({name: (each.cpus, used[name]) for name, each in lots.items()}, roaming, room, others)


def _shares(lots: Mapping[Side, tuple[float, float]], roaming: float, room: float, others: float) -> Use:
    held = sum(cpus for cpus, _ in lots.values())
    if held > room or not lots:
        everywhere = others + (sum(used for _, used in lots.values()) + roaming) / room if room else others
        return Use(everywhere, everywhere, everywhere)
    shares = {name: others + used / cpus for name, (cpus, used) in lots.items()}
    rest = [(room - held, others)] if room > held else []
    level = filled([*((cpus, shares[name]) for name, (cpus, _) in lots.items()), *rest], roaming)
    ends = {name: max(share, level) if roaming else share for name, share in shares.items()}
    return Use(ends.get("sut", level), ends.get("client", level), level)


def _cpus(demand: Demand) -> float:
    return demand.used * demand.cpus
