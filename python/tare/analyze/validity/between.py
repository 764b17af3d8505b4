"""Rules for runs between two hosts: one kernel, and limits of the wire or of the client's host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tare.analyze.columns import known
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share
from tare.analyze.validity.load import BUSY
from tare.record.between import Between
from tare.record.run_record import RunRecord

FULL = 0.8
"""Share of the bytes per second that one TCP connection carried over the idle wire. Requests come in bursts, and at
four fifths of a link's rate, the mean queue before it is four services long (M/M/1)."""
_BYTES_PER_MBIT = 125_000.0


def one_kernel(evidence: Evidence) -> Iterator[Alarm]:
    """Both hosts of a run have the same boot id: they are namespaces or containers that share CPUs and clock."""
    shared = [run for arm in evidence.arms for run in evidence.between(arm) if run.between and run.between.one_boot]
    if shared:
        yield Alarm(
            "one-kernel",
            None,
            "server and client run on one kernel (one boot id), not on two machines",
            ids(shared),
            "treat the figures as a trial; use two machines",
        )


def wire_bound(evidence: Evidence) -> Iterator[Alarm]:
    """In most runs of an arm, a host's wire carried at least `FULL` of its capacity: the study compares wires."""
    for arm in evidence.arms:
        good = evidence.between(arm)
        uses = {run.run_id: used for run in good if (used := wire_uses(run))}
        bound = {
            host: [run for run in good if uses.get(run.run_id, {}).get(host, 0.0) >= FULL]
            for host in dict.fromkeys(host for used in uses.values() for host in used)
        }
        full = {
            host: runs
            for host, runs in bound.items()
            if 2 * len(runs) > sum(host in used for used in uses.values())
        }
        if full:
            runs = [run for run in good if any(run in each for each in full.values())]
            parts = {host: max(uses[run.run_id][host] for run in each) for host, each in full.items()}
            clustered = any(len(used) > 1 for used in uses.values())
            where = f" of {' and '.join(parts)}" if clustered else ""
            yield Alarm(
                "wire-bound",
                arm,
                f"the network{where} carried {share(max(parts.values()))} of its idle throughput and limited "
                "the rate",
                ids(runs),
                "use a faster network, smaller replies or fewer clients",
            )


def client_host_bound(evidence: Evidence) -> Iterator[Alarm]:
    """In most runs of an arm, the client's host was busy for `BUSY` of its CPU time, including interrupts.

    If both hosts share one kernel, that time includes the server's, and says nothing about the client's host.
    """
    use = evidence.columns.of(client_host_use)
    for arm in evidence.arms:
        rows = evidence.rows(arm)
        rows = rows[known(use[rows])]
        bound = rows[use[rows] >= BUSY]
        if 2 * len(bound) > len(rows):
            yield Alarm(
                "client-host-bound",
                arm,
                f"the client's host used {share(float(use[bound].max()))} of its CPU time and may have limited the "
                "rate",
                evidence.ids(bound),
                "use a larger host for the client or a cheaper generator, and check what else runs there",
            )


def wire_uses(run: RunRecord) -> Mapping[str, float]:
    """Host → used share of its wire's idle throughput in the measure phase, in the busier direction.

    A single server and its client share one wire, seen from the client. Each node of a cluster has its own wire,
    which also carries traffic to other nodes. The client's wire may be faster than the throughput measured to any
    single node: if it carried more, its capacity is the link speed, or unknown.
    """
    seconds, between = run.usage and run.usage.monotonic_s, run.between
    if not seconds or between is None:
        return {}
    capacities, uses = _capacities(between), dict[str, float]()
    sides = _sides(run, between)
    for side, host in sides.items() if len(sides) > 2 else (("client", between.client),):
        route = between.route_of(side)
        parts = []
        for counter, way in (("rx_bytes", "in"), ("tx_bytes", "out")):
            carried = None if route is None else (route.counters or {}).get(counter)
            most = capacities.get((host, way))
            if route is None or carried is None or not most:
                continue
            if side == "client" and len(sides) > 2 and carried / seconds > most:
                most = None if route.speed_mbit is None else route.speed_mbit * _BYTES_PER_MBIT
            if most:
                parts.append(carried / seconds / most)
        if parts:
            uses[host] = max(parts)
    return uses


def _sides(run: RunRecord, between: Between) -> Mapping[str, str]:
    """Side in the record's `between` → name of its host."""
    nodes = run.nodes or {}
    further = {side: nodes[side].on or "" for side in between.sides or {} if side in nodes}
    return {"sut": between.sut, "client": between.client, **further}


def _capacities(between: Between) -> Mapping[tuple[str, str], float]:
    """(host, `in` or `out`) → most bytes per second that one connection carried in that direction."""
    most: dict[tuple[str, str], float] = {}
    links = ((link.asks, link.answers, link.throughput) for link in between.links)
    for asks, answers, carried in ((between.client, between.sut, between.throughput), *links):
        if carried is None:
            continue
        for place, rate in (
            ((asks, "out"), carried.to_sut),
            ((answers, "in"), carried.to_sut),
            ((answers, "out"), carried.to_client),
            ((asks, "in"), carried.to_client),
        ):
            most[place] = max(most.get(place, 0.0), rate)
    return most


def client_host_use(run: RunRecord) -> float | None:
    """Busy share of the CPU time of the client's host; `None` if it is the SUT's host too."""
    machine = run.usage and run.usage.client_machine
    if not machine or (run.between and run.between.one_boot):
        return None
    total = sum(machine.values())
    idle = machine.get("idle", 0.0) + machine.get("iowait", 0.0)
    return float((total - idle) / total) if total else None
