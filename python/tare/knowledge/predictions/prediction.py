"""Predicted cost of an arm: the profile of bare runs times a machine's unit costs, by operational bounds.

In a closed loop of n operations with r requests each, an operation of the baseline takes R = n / X at throughput X.
On a path that adds d to each request, and s_i CPU time at station i (the server's CPUs, the client's, all of the
machine's), no more than

    X' = min( n / (R + r·d),  min over i of X·u_i / v_i · D_i / (D_i + r·s_i + b·t_i) )

is possible. b is the number of KiB of an operation's requests and replies beyond those that s_i was measured with,
t_i the CPU time of one KiB. D_i is the baseline's CPU time per operation at station i, v_i the share of its CPUs
that all operations use, and u_i the share that they can use: v_i, if that is `FULL` or more, else `FULL`. All three
exclude what others use of the machine. These are the asymptotic bounds of operational analysis (Denning & Buzen,
ACM Computing Surveys 10(3), 1978). An open loop at a rate below them keeps it, and pays in CPU time and latency
(at_rate.py); other storages are `_of_storage`. A program that is itself the SUT sends no requests; r is then the
number of its system calls, which cost more in a container.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tare.analyze.runs import select_runs
from tare.knowledge.benchmark import setup_of
from tare.knowledge.claim import Setup
from tare.knowledge.predictions.at_rate import carries, cpu_at_rate, latency_at_rate, others_share
from tare.knowledge.predictions.measured import Kept, measured
from tare.knowledge.predictions.model_error import ASSUMED, CPU, LATENCY, THROUGHPUT, ModelError
from tare.knowledge.predictions.path_costs import ALONE, PLAIN, PathCosts, path_costs, shifted
from tare.knowledge.predictions.profile import Profile, Station, constant_rate, kept_rate, pipelined, profile_of
from tare.knowledge.predictions.queueing import slowest_demand, thinking_time, throughput
from tare.knowledge.predictions.storage_costs import StorageCosts, moved, same_place, storage_costs, why_no_costs
from tare.knowledge.predictions.traffic import Traffic
from tare.knowledge.unit_costs import UnitCosts, path_of
from tare.record.run_record import RunRecord
from tare.study.model import Study

FULL = 0.95
"""Largest share of its CPUs that a station can use, if unknown."""
_NOTHING = 1e-9
"""A log ratio that is only rounding."""
Bound = Station | Literal["time", "disk"]


@dataclass(frozen=True)
class Prediction:
    """A metric of an arm relative to the baseline, as a log ratio with its 90 % interval.

    `bound`: what then limits a closed loop: a station, `disk`, or `time` for the requests' own time. `why_none`: a
    clause, if no prediction is possible. `of_costs`: standard deviation from the unit costs alone. `measured`: the
    arm's log ratio in the store itself, if any, with its standard error. `kib`: see `Profile`. For a latency at a
    rate, `falls_behind`: whether the arm is predicted to fall behind the rate, `None` if unknown; `kept`: how often
    it kept up.
    """

    arm: str
    log_ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bound: Bound | None = None
    why_none: str | None = None
    measured: float | None = None
    of_costs: float | None = None
    measured_se: float | None = None
    kib: float | None = None
    metric: str = THROUGHPUT
    falls_behind: bool | None = None
    kept: Kept | None = None


def predicted(  # noqa: PLR0913 - what is known of an arm and of the machine
    arm: str,
    setup: Setup,
    profile: Profile,
    costs: UnitCosts,
    error: ModelError = ASSUMED,
    *,
    metric: str = THROUGHPUT,
    beside: str | None = "host",
) -> Prediction:
    """Predict one arm against the bare baseline. `beside`: the baseline's storage."""
    path = path_of(setup)
    elsewhere = not same_place(setup.storage, beside)
    if path in (PLAIN, ALONE) and not elsewhere:
        return Prediction(arm, why_none="it is deployed like the baseline", metric=metric)
    known = path_costs(path, costs)
    if isinstance(known, str):
        return Prediction(arm, why_none=known, metric=metric)
    storage = storage_costs(costs, setup.storage) if elsewhere and beside == "host" else None
    if elsewhere and storage is None:
        return Prediction(arm, why_none=why_no_costs(costs, setup.storage, beside), metric=metric)
    if why := _lacks(profile, elsewhere=elsewhere, metric=metric):
        return Prediction(arm, why_none=why, metric=metric)
    falls_behind, why = _capacity(profile, known) if metric == LATENCY else (None, None)
    if why is not None:
        return Prediction(arm, why_none=why, metric=metric, falls_behind=falls_behind)
    if metric == THROUGHPUT:
        point, bound = _closed(profile, known, storage, shift=0.0)
        ends = [_closed(profile, known, storage, shift=shift)[0] for shift in (-1.0, 1.0)]
    else:
        point, *ends = (_open(metric, profile, known, storage, shift=shift) for shift in (0.0, -1.0, 1.0))
        bound = None
    learned, of_costs = error.of(metric), abs(ends[0] - ends[1]) / 2
    reach, point = learned.half(point, of_costs), learned.corrected(point)
    counted = profile.kib if any(known.a_kib.values()) and metric != LATENCY else None
    if setup.client is None:
        counted = 0.0  # it sends nothing
        bound = None if abs(point) < _NOTHING else bound
    return Prediction(
        arm, point, point - reach, point + reach, bound,
        of_costs=of_costs, kib=counted, metric=metric, falls_behind=falls_behind,
    )  # fmt: skip


def _capacity(profile: Profile, path: PathCosts) -> tuple[bool | None, str | None]:
    """Return whether an arm falls behind the rate (`None` if unknown), and why there is no latency, if so."""
    keeps_up = carries(profile, path)
    if keeps_up is None:
        return None, "its bare runs and other programs filled its CPUs, so its queues cannot be predicted"
    if not keeps_up:
        return True, "its CPUs cannot keep up with this rate, so requests pile up"
    if not carries(profile, path, shift=1.0):
        return (
            False,
            "its CPUs may not keep up with this rate: they cannot if unit costs are one standard error higher",
        )
    return False, None


def _lacks(profile: Profile, *, elsewhere: bool, metric: str) -> str | None:
    """Return what the bare runs lack for a prediction of this metric."""
    if elsewhere and profile.disk is None:
        return "the bare runs do not show how long the disk was busy, or how much it did"
    missing = {CPU: profile.cpu_us, LATENCY: profile.latency_us, THROUGHPUT: profile.flying}[metric]
    return None if missing else "the bare runs do not record enough"


def _closed(
    profile: Profile, path: PathCosts, storage: StorageCosts | None, *, shift: float
) -> tuple[float, Bound]:
    """ln(X'/X) and what sets it, with all costs `shift` standard errors above their means."""
    point, bound = _log_ratio(profile, path, shift=shift)
    if storage is None:
        return point, bound
    of_storage = _of_storage(profile, storage, shift=shift)
    return point + of_storage, "disk" if abs(of_storage) > abs(point) else bound


def _of_storage(profile: Profile, storage: StorageCosts, *, shift: float) -> float:
    """Return ln(X'/X) if the disk's time and the server's CPU time change, by a closed network with the client.

    The network is fitted to the throughput of the bare runs. If the disk is busier than either CPU, its time is
    increased beyond its busy time, since a commit also waits for its turn; otherwise an operation spends the rest
    outside all three.
    """
    assert profile.disk is not None  # noqa: S101 - `_lacks` has seen to it
    assert profile.flying is not None  # noqa: S101 - likewise
    if not profile.disk.us:
        return 0.0
    cpus, cpus_then = (_cpu_demands(each) for each in (profile, moved(profile, storage, shift)))
    customers, per_us = max(1, round(profile.flying)), profile.per_s / 1e6
    disk, delay = profile.disk.us, 0.0
    if disk > max(cpus, default=0.0):
        disk = slowest_demand(customers, cpus, disk, per_us)
    else:
        delay = thinking_time(customers, [*cpus, disk], per_us)
    then = disk * storage.of(profile.disk.written, shift)
    rates = [throughput(customers, times, delay) for times in ([*cpus_then, then], [*cpus, disk])]
    return math.log(rates[0] / rates[1])


def _cpu_demands(profile: Profile) -> Sequence[float]:
    """Time of an operation on the CPUs of the server, and of the client."""
    return [each.us / each.cpus for name, each in profile.stations.items() if name != "machine"]


def _open(metric: str, profile: Profile, path: PathCosts, storage: StorageCosts | None, *, shift: float) -> float:
    """Return the log ratio of an operation's CPU time or mean latency at a constant rate."""
    if metric == LATENCY:
        return latency_at_rate(profile, path, storage, shift=shift)
    return cpu_at_rate(profile, path, storage, shift=shift)


def _log_ratio(profile: Profile, path: PathCosts, *, shift: float) -> tuple[float, Bound]:
    """ln(X'/X) and what sets it, with all costs `shift` standard errors above their means."""
    assert profile.flying is not None  # noqa: S101 - only a closed loop comes here
    whole_us = 1e6 * profile.flying / profile.per_s
    bounds: dict[Bound, float] = {
        "time": 1e6 * profile.flying / (whole_us + profile.requests * shifted(path.waited, shift))
    }
    for name, demand in profile.stations.items():
        cost, a_kib = path.added.get(name), path.a_kib.get(name)
        others = others_share(profile) if name == "machine" else 0.0
        own = demand.used - others
        if cost is not None and own > 0:
            before = demand.us * own / demand.used
            more = profile.requests * shifted(cost, shift)
            more += 0.0 if profile.kib is None or a_kib is None else profile.kib * shifted(a_kib, shift)
            room = max(demand.used, FULL) - others
            bounds[name] = profile.per_s * room / own * before / (before + more)
    least = min(bounds, key=lambda name: bounds[name])
    return math.log(bounds[least] / profile.per_s), least


def _not_plain(baseline: Setup) -> str:
    """Return why unit costs, which are relative to bare at 127.0.0.1, do not apply to this baseline."""
    if baseline.deployment == "bare" and baseline.client == "bare":
        return f"its baseline is reached over the network {baseline.network}, not at 127.0.0.1"
    return "its baseline is not bare"


def _no_profile(base: str, bare: Sequence[RunRecord]) -> str:
    """Return why the good runs of the baseline have no profile."""
    if not bare:
        return f"its baseline {base} has no good run"
    if any(constant_rate(run) and not kept_rate(run) for run in bare):
        return "bare runs did not keep up with the rate"
    if any(pipelined(run) for run in bare):
        return "its requests are pipelined, and no trace shows how many share a packet"
    return "no bare run, in a closed loop or at one rate, shows how many requests an operation sends"


def predictions(
    study: Study,
    records: Sequence[RunRecord],
    costs: UnitCosts,
    error: ModelError = ASSUMED,
    traffic: Traffic | None = None,
) -> Iterator[Prediction]:
    """Predict each arm with a bare baseline that has good runs; add its measurement, if there is one."""
    good = select_runs(study, records).good
    for arm in study.arms:
        base = study.baseline_of(arm.name)
        if arm.control or base == arm.name:
            continue
        baseline = next(each for each in study.arms if each.name == base)
        if path_of(setup_of(baseline)) not in (PLAIN, ALONE):
            yield Prediction(arm.name, why_none=_not_plain(setup_of(baseline)))
            continue
        bare = {block: run for (block, name), run in good.items() if name == base}
        profile = profile_of(list(bare.values()), traffic)
        if profile is None:
            yield Prediction(arm.name, why_none=_no_profile(base, list(bare.values())))
            continue
        own = {block: run for (block, name), run in good.items() if name == arm.name}
        for metric in (THROUGHPUT,) if profile.flying is not None else (CPU, LATENCY):
            of_store = measured(own, bare, metric)
            yield replace(
                predicted(
                    arm.name, setup_of(arm), profile, costs, error,
                    metric=metric, beside=setup_of(baseline).storage,
                ),
                measured=of_store.log_ratio,
                measured_se=of_store.se,
                kept=of_store.kept,
            )  # fmt: skip
