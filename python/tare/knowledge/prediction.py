"""What an arm would cost: the profile of bare runs times the unit costs of a machine, through operational bounds.

A closed loop of n operations, each with r requests, takes on the baseline R = n / X for an operation at throughput
X. On a path that adds d to each request, and s_i CPU time at station i (the server's CPUs, the client's, all of the
machine's), no more than

    X' = min( n / (R + r·d),  min over i of K_i·u_i / (D_i + r·s_i) )

can be had, where D_i is the CPU time that an operation has there now, K_i the CPUs of the station and u_i the share
of them that can be used: what it used in the baseline, if that was `FULL` or more, else `FULL`. These are the
asymptotic bounds of operational analysis (Denning & Buzen, ACM Computing Surveys 10(3), 1978).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tare.analyze.numbers import number_at
from tare.analyze.runs import select_runs
from tare.knowledge.advice_text import percent
from tare.knowledge.benchmark import setup_of
from tare.knowledge.claim import Setup
from tare.knowledge.unit_costs import (
    FEWEST,
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
MODEL_SD = 0.05
"""Standard deviation of the model's own error, as a log ratio: an assumption, docs/reference/unit-costs.md."""
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
    `stations`: those whose CPU time is known.
    """

    requests: float
    per_s: float
    flying: float
    stations: Mapping[Station, Demand]
    runs: int


@dataclass(frozen=True)
class Prediction:
    """Throughput of an arm relative to the baseline, as a log ratio with its 90 % interval.

    `bound`: what sets the rate then: a station, or `time` where the requests' own time does. `why_none`: a clause
    where nothing can be predicted. `measured`: the log ratio that the store itself has of the arm, if any.
    """

    arm: str
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bound: Station | Literal["time"] | None = None
    why_none: str | None = None
    measured: float | None = None


def profile_of(runs: Sequence[RunRecord]) -> Profile | None:
    """From good bare runs of a closed loop; `None` where none tells enough."""
    found = [each for each in map(_profile, runs) if each is not None]
    if not found:
        return None
    names = [name for name in _QUANTITIES if all(name in each.stations for each in found)]
    return Profile(
        requests=statistics.median(each.requests for each in found),
        per_s=statistics.median(each.per_s for each in found),
        flying=statistics.median(each.flying for each in found),
        stations={
            name: Demand(
                us=statistics.median(each.stations[name].us for each in found),
                cpus=statistics.median(each.stations[name].cpus for each in found),
                used=statistics.median(each.stations[name].used for each in found),
            )
            for name in names
        },
        runs=len(found),
    )


def _profile(run: RunRecord) -> Profile | None:
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
    return Profile(queries / per_s, per_s, flying, stations, 1)


def predicted(arm: str, setup: Setup, profile: Profile, costs: UnitCosts) -> Prediction:
    """Of one arm against the bare baseline."""
    path = path_of(setup)
    if path == PLAIN:
        return Prediction(arm, why_none="it is deployed as the baseline is")
    added = {name: costs.of(path, "busy", quantity) for name, quantity in _QUANTITIES.items()}
    waited = costs.of(path, "alone", "time")
    if waited is None or not any(added.values()):
        return Prediction(arm, why_none=f"no unit cost is known of {' / '.join(path)}")
    if any(each.se is None for each in (waited, *added.values()) if each is not None):
        return Prediction(arm, why_none=f"the unit costs of {' / '.join(path)} have fewer than {FEWEST} blocks")
    point, bound = _log_ratio(profile, added, waited, shift=0.0)
    ends = [_log_ratio(profile, added, waited, shift=shift)[0] for shift in (-1.0, 1.0)]
    of_costs = abs(ends[0] - ends[1]) / 2
    reach = NINETY * math.hypot(of_costs, MODEL_SD)
    return Prediction(arm, point, point - reach, point + reach, bound)


def _log_ratio(
    profile: Profile, added: Mapping[Station, UnitCost | None], waited: UnitCost, *, shift: float
) -> tuple[float, Station | Literal["time"]]:
    """ln(X'/X) and what sets it, with all costs `shift` standard errors above their means."""
    whole_us = 1e6 * profile.flying / profile.per_s
    bounds: dict[Station | Literal["time"], float] = {
        "time": 1e6 * profile.flying / (whole_us + profile.requests * _shifted(waited, shift))
    }
    for name, demand in profile.stations.items():
        cost = added.get(name)
        if cost is not None:
            more = demand.us + profile.requests * _shifted(cost, shift)
            bounds[name] = 1e6 * demand.cpus * max(demand.used, FULL) / more
    least = min(bounds, key=lambda name: bounds[name])
    return math.log(bounds[least] / profile.per_s), least


def _shifted(cost: UnitCost, shift: float) -> float:
    """Never less than nothing: no path gives time back. Raises `ValueError` for a cost without a standard error."""
    if shift and cost.se is None:
        raise ValueError(f"a cost of {cost.n} blocks has no standard error")
    return max(0.0, cost.us + (shift * cost.se if cost.se is not None else 0.0))


def predictions(study: Study, records: Sequence[RunRecord], costs: UnitCosts) -> Iterator[Prediction]:
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
        profile = profile_of(list(bare.values()))
        if profile is None:
            yield Prediction(
                arm.name, why_none="no bare run of a closed loop says how many requests an operation sends"
            )
            continue
        own = {block: run for (block, name), run in good.items() if name == arm.name}
        yield replace(predicted(arm.name, setup_of(arm), profile, costs), measured=_measured(own, bare))


def _measured(own: Mapping[int, RunRecord], bare: Mapping[int, RunRecord]) -> float | None:
    logs = [
        math.log(above / below)
        for block, run in own.items()
        if block in bare
        and (above := number_at(run.measurement, ("throughput_per_s",)))
        and (below := number_at(bare[block].measurement, ("throughput_per_s",)))
    ]
    return statistics.fmean(logs) if logs else None


_BOUNDS: Mapping[str, str] = {
    "machine": "CPU of the machine",
    "sut": "CPU of the SUT",
    "client": "CPU of the client",
    "time": "time of each request",
}


def prediction_lines(found: Sequence[Prediction], width: int) -> Iterator[str]:
    """A table of throughput against the baseline in lines of at most `width` characters; nothing of no arms."""
    if not found:
        return
    yield ""
    yield "Predicted throughput against bare (90 % interval), from this machine's unit costs:"
    name = max(len(each.arm) for each in found)
    for each in found:
        if each.log_ratio is None or each.low is None or each.high is None or each.bound is None:
            yield f"  {each.arm:<{name}}  no prediction: {each.why_none}"[:width]
            continue
        ends = f"[{percent(each.low)}, {percent(each.high)}]"
        beside = "" if each.measured is None else f"; measured {percent(each.measured)}"
        yield f"  {each.arm:<{name}}  {percent(each.log_ratio)} {ends}, limited by {_BOUNDS[each.bound]}{beside}"


def prediction_trees(found: Sequence[Prediction]) -> list[dict[str, object]]:
    """For JSON: log ratios as relative changes, fractions."""
    return [
        {
            "arm": each.arm,
            "throughput": _relative(each.log_ratio),
            "low": _relative(each.low),
            "high": _relative(each.high),
            "bound": each.bound,
            "why_none": each.why_none,
            "measured": _relative(each.measured),
        }
        for each in found
    ]


def _relative(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else math.expm1(log_ratio)
