"""Profile of an operation in bare runs: requests, bytes, CPU time at each station, time on the disk."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tare.analyze.derived import cpu_per_operation_us
from tare.analyze.numbers import number_at
from tare.analyze.validity.completeness import SHORT
from tare.analyze.validity.load import is_alone
from tare.knowledge.predictions.round_trips import calls_per_operation, requests_per_operation
from tare.knowledge.predictions.traffic import Sent, Traffic
from tare.knowledge.unit_costs import (
    REQUEST_BYTES,
    SMALL_BYTES,
    Quantity,
    in_flight,
    machine_busy_s,
)
from tare.record.observation import Side
from tare.record.run_record import RunRecord

Station = Literal["machine", "sut", "client"]
QUANTITIES: Mapping[Station, Quantity] = {"machine": "machine-cpu", "sut": "sut-cpu", "client": "client-cpu"}


@dataclass(frozen=True)
class Demand:
    """Demand at one station. `us`: CPU time of an operation; `cpus`: number it may use; `used`: share in use."""

    us: float
    cpus: float
    used: float


@dataclass(frozen=True)
class Disk:
    """Use of the busiest disk by an operation. `us`: its busy time; `written`: share of writes in that time.

    `reads`, `writes`: number of them that the disk completed.
    """

    us: float
    written: float
    reads: float
    writes: float


@dataclass(frozen=True)
class Profile:
    """Profile of an operation: medians over bare runs.

    `requests`: round trips an operation, or system calls of a program that is itself the SUT; `per_s`: operations a
    second; `flying`: operations in flight, `None` for an open loop; `stations`: those with a known CPU time. `kib`:
    KiB of an operation, beyond those of its requests in the unit costs; `disk`; `cpu_us`: CPU time of the SUT,
    `latency_us`: mean latency. `None`: nothing tells.
    """

    requests: float
    per_s: float
    flying: float | None
    stations: Mapping[Station, Demand]
    runs: int
    kib: float | None = None
    disk: Disk | None = None
    cpu_us: float | None = None
    latency_us: float | None = None


def profile_of(runs: Sequence[RunRecord], traffic: Traffic | None = None) -> Profile | None:
    """Make a profile from good bare runs, all closed loops or all open ones; `None` if the runs lack figures."""
    profiles = [
        each for run in runs if (each := _profile(run, None if traffic is None else traffic(run))) is not None
    ]
    if not profiles:
        return None
    names = [name for name in QUANTITIES if all(name in each.stations for each in profiles)]
    disks = [each.disk for each in profiles if each.disk is not None]
    flying = [each.flying for each in profiles if each.flying is not None]
    return Profile(
        requests=statistics.median(each.requests for each in profiles),
        per_s=statistics.median(each.per_s for each in profiles),
        flying=statistics.median(flying) if len(flying) == len(profiles) else None,
        stations={
            name: Demand(
                us=statistics.median(each.stations[name].us for each in profiles),
                cpus=statistics.median(each.stations[name].cpus for each in profiles),
                used=statistics.median(each.stations[name].used for each in profiles),
            )
            for name in names
        },
        runs=len(profiles),
        kib=_median(each.kib for each in profiles),
        disk=_median_disk(disks),
        cpu_us=_median(each.cpu_us for each in profiles),
        latency_us=_median(each.latency_us for each in profiles),
    )


def _median_disk(disks: Sequence[Disk]) -> Disk | None:
    if not disks:
        return None
    return Disk(
        us=statistics.median(each.us for each in disks),
        written=statistics.median(each.written for each in disks),
        reads=statistics.median(each.reads for each in disks),
        writes=statistics.median(each.writes for each in disks),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def constant_rate(run: RunRecord) -> bool:
    """Whether arrivals came at one rate, independent of replies."""
    workload = run.settings.get("workload") or {}
    if any(workload.get(key) for key in ("stages", "trace", "sustainable", "target")):
        return False
    return bool(workload.get("rate"))


def kept_rate(run: RunRecord) -> bool:
    """Whether an open loop's arrivals were served in time, all but the share `SHORT`; true if unknown."""
    share = run.measurement and run.measurement.details.get("delivered_share")
    return share is None or share >= 1 - SHORT


def _profile(run: RunRecord, sent: Sent | None) -> Profile | None:
    if run.measurement is None:
        return None
    per_s, operations = run.measurement.throughput_per_s, run.measurement.operations
    flying, over_s = in_flight(run), run.usage and run.usage.over_s
    latency_ms = run.measurement.latency.mean_ms
    requests = calls_per_operation(run) if is_alone(run) else _round_trips(run, sent)
    if not per_s or not operations or requests is None or not over_s or (flying is None and not constant_rate(run)):
        return None
    if flying is None and not kept_rate(run):
        return None
    used: Mapping[Station, float | None] = {
        "machine": machine_busy_s(run),
        "sut": run.usage and run.usage.sut_cpu_s,
        "client": run.usage and run.usage.client_cpu_s,
    }
    cpus: Mapping[Station, float | None] = {
        "machine": run.host.cpu_count,
        "sut": _usable_cpus(run, "sut"),
        "client": _usable_cpus(run, "client"),
    }
    stations = {
        name: Demand(1e6 * spent / operations, room, min(1.0, spent / over_s / room))
        for name in QUANTITIES
        if (spent := used[name]) is not None and (room := cpus[name])
    }
    small = requests * (SMALL_BYTES + REQUEST_BYTES)
    beyond = None if sent is None else max(0.0, sent.payload_bytes / operations - small) / 1024
    return Profile(
        requests=requests,
        per_s=per_s,
        flying=flying,
        stations=stations,
        runs=1,
        kib=beyond,
        disk=_disk(run, per_s),
        cpu_us=cpu_per_operation_us(run),
        latency_us=None if latency_ms is None else 1e3 * latency_ms,
    )


def _usable_cpus(run: RunRecord, side: Side) -> float | None:
    """CPU time that a side could use, in CPUs: by the trace, else what it was allowed."""
    if (usage := run.usage) is None:
        return None
    is_sut, saturation = side == "sut", usage.saturation
    traced = saturation and (saturation.sut if is_sut else saturation.client)
    return (traced and traced.cpus) or (usage.sut_cpus if is_sut else usage.client_cpus)


def pipelined(run: RunRecord) -> bool:
    """Whether a connection has several requests in flight."""
    return (number_at(run.settings, ("workload", "pipeline")) or 1) > 1


def _round_trips(run: RunRecord, sent: Sent | None) -> float | None:
    """Round trips of an operation: those of its requests, but pipelined requests share packets.

    A request that is not pipelined has two packets, one each way.
    """
    requests, operations = requests_per_operation(run) or None, run.measurement and run.measurement.operations
    if requests is None or not pipelined(run):
        return requests
    return None if sent is None or not operations else min(requests, sent.packets / operations / 2)


def _disk(run: RunRecord, per_s: float) -> Disk | None:
    """By the utilisation law: the share of the time in which the disk was busy, over operations a second."""
    disk = run.usage and run.usage.disk
    if disk is None or disk.busy is None or disk.reads_per_s is None or disk.writes_per_s is None:
        return None
    if (disk.reads_per_s and disk.read_ms is None) or (disk.writes_per_s and disk.write_ms is None):
        return None  # an imported log may lack the times
    read, written = disk.reads_per_s * (disk.read_ms or 0.0), disk.writes_per_s * (disk.write_ms or 0.0)
    share = written / (read + written) if read + written else 1.0
    return Disk(
        us=1e6 * disk.busy / per_s, written=share, reads=disk.reads_per_s / per_s, writes=disk.writes_per_s / per_s
    )
