"""Unit costs of a machine: what a request and its reply cost on each network path, without a database.

From the runs of the study `unit-costs`: a server that does nothing with a request (`tare-load echo`), each path
beside bare in every block. docs/reference/unit-costs.md tells what each figure means.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from scipy.special import stdtrit

from tare.analyze.derived import cpu_per_operation_us
from tare.analyze.numbers import number_at
from tare.analyze.runs import select_runs
from tare.calibrate.summary import Identity
from tare.knowledge.benchmark import setup_of
from tare.knowledge.claim import Setup
from tare.knowledge.event_costs import EventCost
from tare.record.run_record import RunRecord
from tare.study.model import Study
from tare.study.values import Strict

FORMAT: Literal[1] = 1
STUDY = "unit-costs"
Load = Literal["busy", "alone", "large"]
"""16 requests in flight; one; 16 in flight with replies of 16 KiB."""
LOADS: Mapping[str, Load] = {"busy": "busy", "alone": "alone", "large": "large"}
"""Level of the study's factor `load` → what it is."""
Quantity = Literal["machine-cpu", "sut-cpu", "client-cpu", "time"]
QUANTITIES: tuple[Quantity, ...] = ("machine-cpu", "sut-cpu", "client-cpu", "time")
"""CPU microseconds of all of the machine, of the server with its docker-proxy, of the client; or the mean time
from one request to the next of a connection, in microseconds. Each a request."""
Path = tuple[str, str, str]
"""Deployment of the server and of the client, and the network between them, in the claims' words."""
IDLE_MODES = frozenset({"idle", "iowait", "steal", "guest", "guest_nice"})
"""Fields of /proc/stat: time that no program of this machine used, or that `user` holds already."""
LARGE_BYTES, SMALL_BYTES = 16384, 100
REQUEST_BYTES = 22
"""`GET 100` in Redis' protocol, what the study's requests are."""
FEWEST = 3
LINKS = ("macvlan", "ipvlan", "pod-macvlan")
"""Networks whose cost is that of a link, measured between bare ends, on top of a container's on the host's network.

`pod-macvlan`: server and node each on a macvlan of one parent.
"""


class UnitCost(Strict):
    """Microseconds a request more than bare (`bare`: the whole cost there), mean over blocks.

    `low`, `high`: 95 % interval (Student's t over blocks), `None` below `FEWEST` blocks. `per_kib`: of a KiB of
    the reply rather than of a request.
    """

    deployment: str
    client: str
    network: str
    load: Load
    quantity: Quantity
    us: float
    se: float | None
    low: float | None
    high: float | None
    n: int
    per_kib: bool = False

    @property
    def path(self) -> Path:
        """Which path it is of."""
        return self.deployment, self.client, self.network


class UnitCosts(Strict):
    """All of one machine under one kernel and engine. `digest`: of the plan that they were measured by."""

    format: Literal[1] = FORMAT
    tare: str
    identity: Identity
    measured_at: float
    digest: str
    costs: tuple[UnitCost, ...]
    events: tuple[EventCost, ...] = ()
    """Costs of kernel events; empty if weighed before they were measured."""

    def of(self, path: Path, load: Load, quantity: Quantity, *, per_kib: bool = False) -> UnitCost | None:
        """One cost, `None` where it is not known."""
        wanted = (path, load, quantity, per_kib)
        matching = (each for each in self.costs if (each.path, each.load, each.quantity, each.per_kib) == wanted)
        return next(matching, None)


def path_of(setup: Setup) -> Path:
    """Which path a setup has; `none` for a client or a network that is not there."""
    return setup.deployment, setup.client or "none", setup.network or "none"


def unit_costs(study: Study, records: Sequence[RunRecord]) -> tuple[UnitCost, ...]:
    """Every cost that the good runs tell, paths in the study's order."""
    runs = select_runs(study, records)
    by_arm: dict[str, dict[int, RunRecord]] = {}
    for (block, name), run in runs.good.items():
        by_arm.setdefault(name, {})[block] = run
    found: list[UnitCost] = []
    for arm in study.arms:
        if arm.control or arm.name not in by_arm:
            continue
        path = path_of(setup_of(arm))
        load = LOADS[arm.levels["load"]]
        baseline = by_arm.get(study.baseline_of(arm.name), {})
        bare = study.baseline_of(arm.name) == arm.name
        for quantity in QUANTITIES:
            values = {block: _of(run, quantity) for block, run in by_arm[arm.name].items()}
            below = {block: _of(run, quantity) for block, run in baseline.items()}
            more = [
                value if bare else value - other
                for block, value in values.items()
                if value is not None and (other := below.get(block)) is not None
            ]
            if more:
                found.append(unit_cost(path, load, quantity, more))
    return (*found, *costs_per_kib(found))


def unit_cost(path: Path, load: Load, quantity: Quantity, values: Sequence[float]) -> UnitCost:
    """One cost with its interval, from a figure of each block, in microseconds."""
    n = len(values)
    mean = statistics.fmean(values)
    se = statistics.stdev(values) / math.sqrt(n) if n >= FEWEST else None
    reach = None if se is None else float(stdtrit(n - 1, 0.975)) * se
    return UnitCost(
        deployment=path[0], client=path[1], network=path[2], load=load, quantity=quantity, us=mean, se=se,
        low=None if reach is None else mean - reach, high=None if reach is None else mean + reach, n=n,
    )  # fmt: skip


def costs_per_kib(costs: Sequence[UnitCost]) -> list[UnitCost]:
    """CPU of a KiB: what a large reply costs more than a small one, over the KiB that it has more."""
    kib = (LARGE_BYTES - SMALL_BYTES) / 1024
    small = {(each.path, each.quantity): each for each in costs if each.load == "busy"}
    found = []
    for large in costs:
        one = small.get((large.path, large.quantity))
        if large.load != "large" or large.quantity == "time" or one is None:
            continue
        us = (large.us - one.us) / kib
        se = None if large.se is None or one.se is None else math.hypot(large.se, one.se) / kib
        reach = None if se is None else float(stdtrit(min(large.n, one.n) - 1, 0.975)) * se
        found.append(
            large.model_copy(
                update={
                    "us": us,
                    "se": se,
                    "low": None if reach is None else us - reach,
                    "high": None if reach is None else us + reach,
                    "n": min(large.n, one.n),
                    "per_kib": True,
                }
            )
        )
    return found


def _of(run: RunRecord, quantity: Quantity) -> float | None:
    """Microseconds a request of one run; `None` where the record does not tell."""
    requests = run.measurement and run.measurement.operations
    if not requests:
        return None
    if quantity == "time":
        rate, flying = run.measurement and run.measurement.throughput_per_s, in_flight(run)
        return None if not rate or flying is None else 1e6 * flying / rate
    if quantity == "sut-cpu":
        return cpu_per_operation_us(run)
    used = machine_busy_s(run) if quantity == "machine-cpu" else run.usage and run.usage.client_cpu_s
    return None if used is None else 1e6 * used / requests


def machine_busy_s(run: RunRecord) -> float | None:
    """CPU seconds that the machine used over the measure phase, all programs and the kernel together."""
    modes = run.usage and run.usage.machine
    return None if not modes else sum(s for mode, s in modes.items() if mode not in IDLE_MODES)


def in_flight(run: RunRecord) -> float | None:
    """Requests that a closed loop keeps under way; `None` of an open loop, or where the workload does not tell."""
    workload = run.settings.get("workload") or {}
    if any(workload.get(key) for key in ("rate", "stages", "trace", "sustainable", "target")):
        return None
    connections = number_at(workload, ("connections",)) or number_at(workload, ("threads",))
    return None if connections is None else connections * (number_at(workload, ("pipeline",)) or 1.0)
