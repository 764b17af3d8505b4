"""What an arm would cost: the profile of bare runs times the unit costs of a machine, through operational bounds.

A closed loop of n operations, each with r requests, takes on the baseline R = n / X for an operation at throughput
X. On a path that adds d to each request, and s_i CPU time at station i (the server's CPUs, the client's, all of the
machine's), no more than

    X' = min( n / (R + r·d),  min over i of K_i·u_i / (D_i + r·s_i + b·t_i) )

can be had. b are the KiB that the requests and replies of an operation have beyond those that s_i was measured
with, t_i the CPU time of one; D_i is the CPU time that an operation has at station i now, K_i its CPUs and u_i the
share of them that can be used: what it used in the baseline, if that was `FULL` or more, else `FULL`. These are the
asymptotic bounds of operational analysis (Denning & Buzen, ACM Computing Surveys 10(3), 1978).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tare.analyze.numbers import number_at
from tare.analyze.runs import select_runs
from tare.knowledge.benchmark import setup_of
from tare.knowledge.claim import Setup
from tare.knowledge.model_error import ASSUMED, ModelError
from tare.knowledge.unit_costs import (
    FEWEST,
    REQUEST_BYTES,
    SMALL_BYTES,
    Path,
    Quantity,
    UnitCost,
    UnitCosts,
    in_flight,
    machine_busy_s,
    path_of,
)
from tare.run.record import RunRecord
from tare.study.model import Study

FULL = 0.95
"""Share of its CPUs that a station can be brought to use, where nothing tells."""
NINETY = 1.6448536269514722
"""Standard errors on either side of a 90 % interval."""
Station = Literal["machine", "sut", "client"]
_QUANTITIES: Mapping[Station, Quantity] = {"machine": "machine-cpu", "sut": "sut-cpu", "client": "client-cpu"}
PLAIN: Path = ("bare", "bare", "host")
"""Server and client bare, at 127.0.0.1: what unit costs are told against."""


@dataclass(frozen=True)
class Demand:
    """At one station. `us`: CPU time of an operation; `cpus`: how many it may use; `used`: share of them in use."""

    us: float
    cpus: float
    used: float


@dataclass(frozen=True)
class Profile:
    """What an operation does in bare runs, medians over them.

    `requests`: round trips an operation; `per_s`: operations a second; `flying`: operations under way at once;
    `stations`: those whose CPU time is known. `kib`: of an operation, beyond as many requests as unit costs have;
    `None`: nothing tells.
    """

    requests: float
    per_s: float
    flying: float
    stations: Mapping[Station, Demand]
    runs: int
    kib: float | None = None


@dataclass(frozen=True)
class Prediction:
    """Throughput of an arm relative to the baseline, as a log ratio with its 90 % interval.

    `bound`: what sets the rate then: a station, or `time` where the requests' own time does. `why_none`: a clause
    where nothing can be predicted. `of_costs`: standard deviation that comes of the unit costs alone. `measured`:
    the log ratio that the store itself has of the arm, if any, with its standard error. `kib`: see `Profile`.
    """

    arm: str
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bound: Station | Literal["time"] | None = None
    why_none: str | None = None
    measured: float | None = None
    of_costs: float | None = None
    measured_se: float | None = None
    kib: float | None = None


Payload = Callable[[RunRecord], float | None]
"""Bytes that a run sent over the loopback interface, without headers; `None`: nothing tells."""


def profile_of(runs: Sequence[RunRecord], payload: Payload | None = None) -> Profile | None:
    """From good bare runs of a closed loop; `None` where none tells enough."""
    profiles = [
        each for run in runs if (each := _profile(run, None if payload is None else payload(run))) is not None
    ]
    if not profiles:
        return None
    names = [name for name in _QUANTITIES if all(name in each.stations for each in profiles)]
    return Profile(
        requests=statistics.median(each.requests for each in profiles),
        per_s=statistics.median(each.per_s for each in profiles),
        flying=statistics.median(each.flying for each in profiles),
        stations={
            name: Demand(
                us=statistics.median(each.stations[name].us for each in profiles),
                cpus=statistics.median(each.stations[name].cpus for each in profiles),
                used=statistics.median(each.stations[name].used for each in profiles),
            )
            for name in names
        },
        runs=len(profiles),
        kib=None
        if not (known := [each.kib for each in profiles if each.kib is not None])
        else statistics.median(known),
    )


def _profile(run: RunRecord, sent: float | None) -> Profile | None:
    per_s, operations = (number_at(run.measurement, (key,)) for key in ("throughput_per_s", "operations"))
    flying, wall = in_flight(run), number_at(run.usage, ("wall_s",))
    queries = number_at(run.measurement, ("queries_per_s",))
    if not per_s or not operations or not queries or flying is None or not wall:
        return None
    used: Mapping[Station, float | None] = {
        "machine": machine_busy_s(run),
        "sut": number_at(run.usage, ("sut_cpu_s",)),
        "client": number_at(run.usage, ("client_cpu_s",)),
    }
    cpus: Mapping[Station, float | None] = {
        "machine": number_at(run.host, ("cpu_count",)),
        "sut": number_at(run.usage, ("saturation", "sut", "cpus")) or number_at(run.usage, ("sut_cpus",)),
        "client": number_at(run.usage, ("saturation", "client", "cpus")) or number_at(run.usage, ("client_cpus",)),
    }
    stations = {
        name: Demand(1e6 * spent / operations, room, min(1.0, spent / wall / room))
        for name in _QUANTITIES
        if (spent := used[name]) is not None and (room := cpus[name])
    }
    requests = queries / per_s
    beyond = None if sent is None else max(0.0, sent / operations - requests * (SMALL_BYTES + REQUEST_BYTES)) / 1024
    return Profile(requests, per_s, flying, stations, 1, beyond)


@dataclass(frozen=True)
class _Path:
    """Unit costs of one path. `a_kib`: CPU time of a KiB, where it is known well enough to be no noise alone."""

    added: Mapping[Station, UnitCost | None]
    a_kib: Mapping[Station, UnitCost | None]
    waited: UnitCost


def predicted(
    arm: str, setup: Setup, profile: Profile, costs: UnitCosts, error: ModelError = ASSUMED
) -> Prediction:
    """Of one arm against the bare baseline."""
    path = path_of(setup)
    if path == PLAIN:
        return Prediction(arm, why_none="it is deployed like the baseline")
    added = {name: costs.of(path, "busy", quantity) for name, quantity in _QUANTITIES.items()}
    waited = costs.of(path, "alone", "time")
    if waited is None or not any(added.values()):
        return Prediction(arm, why_none=f"there is no unit cost for {' / '.join(path)}")
    if any(each.se is None for each in (waited, *added.values()) if each is not None):
        return Prediction(arm, why_none=f"the unit costs of {' / '.join(path)} have fewer than {FEWEST} blocks")
    a_kib = {name: costs.of(path, "large", quantity, per_kib=True) for name, quantity in _QUANTITIES.items()}
    known = _Path(
        added, {name: each for name, each in a_kib.items() if each is None or each.se is not None}, waited
    )
    counted = profile.kib if any(known.a_kib.values()) else None
    point, bound = _log_ratio(profile, known, shift=0.0)
    ends = [_log_ratio(profile, known, shift=shift)[0] for shift in (-1.0, 1.0)]
    of_costs = abs(ends[0] - ends[1]) / 2
    reach, point = NINETY * error.sd(point, of_costs), error.corrected(point)
    return Prediction(arm, point, point - reach, point + reach, bound, of_costs=of_costs, kib=counted)


def _log_ratio(profile: Profile, path: _Path, *, shift: float) -> tuple[float, Station | Literal["time"]]:
    """ln(X'/X) and what sets it, with all costs `shift` standard errors above their means."""
    whole_us = 1e6 * profile.flying / profile.per_s
    bounds: dict[Station | Literal["time"], float] = {
        "time": 1e6 * profile.flying / (whole_us + profile.requests * _shifted(path.waited, shift))
    }
    for name, demand in profile.stations.items():
        cost, a_kib = path.added.get(name), path.a_kib.get(name)
        if cost is not None:
            more = demand.us + profile.requests * _shifted(cost, shift)
            more += 0.0 if profile.kib is None or a_kib is None else profile.kib * _shifted(a_kib, shift)
            bounds[name] = 1e6 * demand.cpus * max(demand.used, FULL) / more
    least = min(bounds, key=lambda name: bounds[name])
    return math.log(bounds[least] / profile.per_s), least


def _shifted(cost: UnitCost, shift: float) -> float:
    """Never less than nothing: no path gives time back. Raises `ValueError` for a cost without a standard error."""
    if shift and cost.se is None:
        raise ValueError(f"a cost of {cost.n} blocks has no standard error")
    return max(0.0, cost.us + (shift * cost.se if cost.se is not None else 0.0))


def predictions(
    study: Study,
    records: Sequence[RunRecord],
    costs: UnitCosts,
    error: ModelError = ASSUMED,
    payload: Payload | None = None,
) -> Iterator[Prediction]:
    """Of each arm, as far as its baseline is bare and has good runs; with what was measured of it, if it was."""
    good = select_runs(study, records).good
    for arm in study.arms:
        base = study.baseline_of(arm.name)
        if arm.control or base == arm.name:
            continue
        baseline = next(each for each in study.arms if each.name == base)
        if path_of(setup_of(baseline)) != PLAIN:
            yield Prediction(arm.name, why_none="its baseline is not bare")
            continue
        bare = {block: run for (block, name), run in good.items() if name == base}
        profile = profile_of(list(bare.values()), payload)
        if profile is None:
            yield Prediction(
                arm.name, why_none="no bare closed-loop run shows how many requests an operation sends"
            )
            continue
        own = {block: run for (block, name), run in good.items() if name == arm.name}
        logs = _measured(own, bare)
        yield replace(
            predicted(arm.name, setup_of(arm), profile, costs, error),
            measured=statistics.fmean(logs) if logs else None,
            measured_se=statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) >= FEWEST else None,
        )


def _measured(own: Mapping[int, RunRecord], bare: Mapping[int, RunRecord]) -> list[float]:
    """Log ratios of throughput, block by block."""
    return [
        math.log(above / below)
        for block, run in own.items()
        if block in bare
        and (above := number_at(run.measurement, ("throughput_per_s",)))
        and (below := number_at(bare[block].measurement, ("throughput_per_s",)))
    ]
