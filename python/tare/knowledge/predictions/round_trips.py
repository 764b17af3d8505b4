"""Requests of an operation: as the generator reports them, or as YCSB's binding sends them.

For a program that is itself the SUT: system calls of an operation.
"""

from __future__ import annotations

from tare.record.run_record import RunRecord
from tare.workloads.ycsb.bindings import BINDING_OF, BINDINGS

_CALLS = {"sysbench-cpu": 0.0, "sysbench-fileio": 1.0}
"""Workload → system calls of an operation: none to search for primes, one to read, write or sync."""


def calls_per_operation(run: RunRecord) -> float | None:
    """System calls per operation of a program that is itself the SUT; `None` if unknown."""
    return _CALLS.get(str(run.settings.get("workload_name")))


def requests_per_operation(run: RunRecord) -> float | None:
    """Mean number of round trips to the server over all operations; `None` if unknown."""
    measured = run.measurement
    if measured is not None and measured.queries_per_s:
        return measured.queries_per_s / measured.throughput_per_s if measured.throughput_per_s else None
    if run.settings.get("workload_name") == "cassandra-stress":
        return 1.0  # its commands read or write one partition by one statement
    return _of_binding(run)


def _of_binding(run: RunRecord) -> float | None:
    """YCSB counts operations by kind, a read-modify-write once more as its read and its update.

    `None` for a YCSB other than tare's, and if an operation has no fixed number of requests.
    """
    operations = run.measurement and run.measurement.operations
    workload, sut = (run.settings.get(key) or {} for key in ("workload", "sut"))
    name = BINDING_OF.get(sut.get("database") or "")
    kinds = run.measurement and run.measurement.by_operation
    if run.settings.get("workload_name") != "ycsb" or workload.get("home") or name is None or not operations:
        return None
    if not kinds or str((workload.get("properties") or {}).get("jdbc.autocommit", "true")).lower() != "true":
        return None
    requests, total = BINDINGS[name].requests, 0.0
    for kind, each in kinds.items():
        if each.operations is None:
            return None
        done, failed = each.operations, each.errors
        if kind == "read-modify-write":
            continue
        if done + failed and kind not in requests:
            return None
        total += (done + failed) * requests.get(kind, 0)
    return total / operations if total else None
