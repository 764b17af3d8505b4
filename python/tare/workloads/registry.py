"""Registry of all workloads; separate from the contract, as importing all of them is slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.plugins import Implementations, breach_of
from tare.workloads import Workload
from tare.workloads.cassandra_stress.cassandra_stress import CassandraStress
from tare.workloads.fake import FakeProgram, FakeWorkload
from tare.workloads.fio.fio import Fio
from tare.workloads.sysbench.cpu import SysbenchCpu
from tare.workloads.sysbench.fileio import SysbenchFileio
from tare.workloads.sysbench.sysbench import Sysbench
from tare.workloads.tare_load.tare_load import TareLoad
from tare.workloads.ycsb.ycsb import Ycsb

BUILT_IN: Mapping[str, Workload[Any]] = {
    "sysbench": Sysbench(),
    "ycsb": Ycsb(),
    "cassandra-stress": CassandraStress(),
    "sysbench-cpu": SysbenchCpu(),
    "sysbench-fileio": SysbenchFileio(),
    "fio": Fio(),
    "tare-load": TareLoad(),
    "fake": FakeWorkload(),
    "fake-program": FakeProgram(),
}
"""Name → implementation of the workloads that come with tare."""

TLS: frozenset[str] = frozenset({"tare-load"})
"""Workloads that can use TLS, and report version and cipher."""

SOCKET: frozenset[str] = frozenset({"sysbench", "tare-load"})
"""Workloads that can connect to a Unix socket."""

WORKLOADS: Implementations[Workload[Any]] = Implementations("workload", BUILT_IN, breach_of(Workload))
"""Built-in workloads and those of plug-ins: docs/guides/plugins.md."""
