"""Runs between two hosts: whether these are two, and whether the wire or the client's host set the rate."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.numbers import number_at
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share
from tare.analyze.validity.load import BUSY
from tare.run.record import RunRecord

FULL = 0.8
"""Of the bytes a second that one TCP connection carried over the idle wire. Requests come in bursts, and at four
fifths of a link's rate a queue before it is four services long in the mean (M/M/1)."""
_WAYS = {"tx_bytes": "to_sut", "rx_bytes": "to_client"}
"""Counter of the client's interface → what was measured that way."""


def one_kernel(evidence: Evidence) -> Iterator[Alarm]:
    """Both hosts of a run had one boot id: namespaces or containers of one machine, which share CPUs and clock."""
    shared = [run for arm in evidence.arms for run in evidence.good(arm) if (run.between or {}).get("one_boot")]
    if shared:
        yield Alarm(
            "one-kernel",
            None,
            "the hosts of server and client run one kernel (one boot id): these figures are not of two machines",
            ids(shared),
            "treat them as a trial; use two machines for figures between two machines",
        )


def wire_bound(evidence: Evidence) -> Iterator[Alarm]:
    """In most runs of an arm the wire carried `FULL` of what it can: then it is the wire that is compared."""
    for arm in evidence.arms:
        good = evidence.good(arm)
        used = {run.run_id: filled for run in good if (filled := wire_use(run)) is not None}
        bound = [run for run in good if run.run_id in used and used[run.run_id] >= FULL]
        if 2 * len(bound) > len(used):
            most = max(used[run.run_id] for run in bound)
            yield Alarm(
                "wire-bound",
                arm,
                f"the network carried {share(most)} of what it carries when it is idle otherwise: it set the rate",
                ids(bound),
                "use a faster network or smaller replies, or fewer clients",
            )


def client_host_bound(evidence: Evidence) -> Iterator[Alarm]:
    """In most runs of an arm the client's host was busy for `BUSY` of its CPU time, its interrupts included.

    Where both hosts have one kernel that time is the server's too, and tells nothing of the client's host.
    """
    for arm in evidence.arms:
        good = evidence.good(arm)
        busy = {run.run_id: part for run in good if (part := client_host_use(run)) is not None}
        bound = [run for run in good if run.run_id in busy and busy[run.run_id] >= BUSY]
        if 2 * len(bound) > len(busy):
            most = max(busy[run.run_id] for run in bound)
            yield Alarm(
                "client-host-bound",
                arm,
                f"the client's host was busy for {share(most)} of its CPU time: it may have set the rate",
                ids(bound),
                "use a larger host for the client, or a cheaper generator; look for what else runs there",
            )


def wire_use(run: RunRecord) -> float | None:
    """The part of the wire's idle throughput that was used in the measure phase, of the fuller way."""
    seconds = number_at(run.usage, ("monotonic_s",))
    parts = []
    for counter, way in _WAYS.items():
        carried = number_at(run.between, ("sides", "client", "counters", counter))
        able = number_at(run.between, ("throughput", way))
        if carried is not None and able and seconds:
            parts.append(carried / seconds / able)
    return max(parts, default=None)


def client_host_use(run: RunRecord) -> float | None:
    """The part of its CPU time for which the client's host was not idle; `None` where it is the SUT's too."""
    machine = (run.usage or {}).get("client_machine")
    if not machine or (run.between or {}).get("one_boot"):
        return None
    total = sum(machine.values())
    idle = machine.get("idle", 0.0) + machine.get("iowait", 0.0)
    return float((total - idle) / total) if total else None
