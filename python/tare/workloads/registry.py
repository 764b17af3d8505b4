"""Every workload by name. In a file of its own, as who only needs the contract should not wait for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.workloads import Workload
from tare.workloads.cassandra_stress import CassandraStress
from tare.workloads.fake import FakeWorkload
from tare.workloads.fake_program import FakeProgram
from tare.workloads.fio import Fio
from tare.workloads.sysbench import Sysbench
from tare.workloads.sysbench_cpu import SysbenchCpu
from tare.workloads.sysbench_fileio import SysbenchFileio
from tare.workloads.ycsb import Ycsb

WORKLOADS: Mapping[str, Workload[Any]] = {
    "sysbench": Sysbench(),
    "ycsb": Ycsb(),
    "cassandra-stress": CassandraStress(),
    "sysbench-cpu": SysbenchCpu(),
    "sysbench-fileio": SysbenchFileio(),
    "fio": Fio(),
    "fake": FakeWorkload(),
    "fake-program": FakeProgram(),
}
