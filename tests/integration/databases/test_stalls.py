"""Which figures tell the truth of a server that stands still: 10 s of operations, stopped for 2 s.

Of the operations that were due, a fifth were due in the stop, and wait for what is left of it: p95 about 1.5 s, p99
about 1.9 s, whatever the generator. docs/reference/workloads/ tells what each one says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import LabRun, make_lab

from tare.sites.engine import connect
from tare.workloads import Latency, Measurement

pytestmark = [pytest.mark.engine, pytest.mark.slow]

RATE, SECONDS, STALL_S = 1000, 10, 2.0
P95_MS, P99_MS, WITHIN = 1500.0, 1900.0, 0.15
"""Truth, and how far from it a figure may be: clients start late and work off what has waited."""
PATIENCE_S = 60
BLIND_MS = 200.0
"""A p99 below it does not know of the stop."""
BLIND_JVMS_MS = 500.0
"""The same of JVMs, whose own pauses and starts are in it."""


@dataclass(frozen=True)
class Case:
    """One way to load. `arrivals`: operations are due whether or not earlier ones are done.

    `begun`: what it prints on standard output when it works, of one that takes seconds to start; a warm-up, where
    one is asked for, is for the server. `jvms`: client and server are JVMs, which on a busy machine work off late
    what has waited, so that figures that see the stop are as large as the truth or larger.
    """

    workload: str
    image: str
    arrivals: bool
    asked: Mapping[str, Any] = field(default_factory=dict)
    sut: Mapping[str, Any] = field(default_factory=dict)
    begun: str | None = None
    jvms: bool = False


YCSB = {"core_workload": "c", "records": 1000, "threads": 8}
STRESS = {"command": "read", "records": 1000, "threads": 8, "warmup_s": 5}
STRESS_RATE = 200
"""A JVM that is cold has to work off what has waited, at once; what is true of the stop holds at any rate."""
CASSANDRA = {"sut_image": "cassandra-3.11", "database": "cassandra", "server": {"heap": "256M"}}
SYSBENCH = {"script": "oltp_point_select", "tables": 1, "table_size": 1000, "threads": 8}
CASES = {
    "sysbench-closed": Case("sysbench", "sysbench", arrivals=False, asked=SYSBENCH),
    "sysbench-rate": Case("sysbench", "sysbench", arrivals=True, asked={**SYSBENCH, "rate": RATE}),
    "ycsb-closed": Case("ycsb", "ycsb", arrivals=False, asked=YCSB),
    "ycsb-target": Case("ycsb", "ycsb", arrivals=True, asked={**YCSB, "target": RATE}),
    **{
        f"cassandra-stress-{name}": Case(
            "cassandra-stress",
            "cassandra-3.11",
            arrivals=name == "fixed",
            asked={**STRESS, **rate},
            sut=CASSANDRA,
            begun="\ntotal, ",
            jvms=True,
        )
        for name, rate in {
            "closed": {},
            "throttle": {"throttle": STRESS_RATE},
            "fixed": {"fixed": STRESS_RATE},
        }.items()
    },
}
"""Every generator that is offered, in each of its loops; a new one gets its line here."""


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


def stalled(case: Case, engine: DockerClient, home: Path, out: Path) -> Measurement:
    lab = make_lab(engine, home, case.workload, case.image, **case.sut)
    with lab.run(lab.settings("bare", "bare", **case.asked, measure_s=SECONDS)) as run:
        if "warmup_s" in case.asked:
            assert run.carry_out("warm-up") == 0
        client, command = run.start("measure")
        wait_until_it_works(run, case)
        run.stall(SECONDS / 2 if case.begun is None else 1, STALL_S)
        code = client.wait(run.bench.machine.clock, command.timeout_s, lambda: None)
        client.stop()
        return run.parse(code, out)


def wait_until_it_works(run: LabRun, case: Case) -> None:
    output, deadline = Path(run.bench.workdir.output("measure").stdout), time.monotonic() + PATIENCE_S
    while case.begun is not None and case.begun not in output.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def knows(latency: Latency, case: Case) -> None:
    for reported, truth in ((latency.p95_ms, P95_MS), (latency.p99_ms, P99_MS)):
        assert reported is not None
        assert reported >= truth * (1 - WITHIN)
        assert case.jvms or reported <= truth * (1 + WITHIN)


def is_blind(latency: Latency, case: Case) -> None:
    assert latency.p99_ms is not None
    assert latency.p99_ms < (BLIND_JVMS_MS if case.jvms else BLIND_MS)


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_to_be_blind_is_and_what_is_said_to_see_does(
    name: str, engine: DockerClient, tmp_path: Path
) -> None:
    case = CASES[name]
    measurement = stalled(case, engine, tmp_path / "home", tmp_path)
    assert measurement.latency.blind_to_stalls is not case.arrivals
    assert measurement.latency.max_ms is not None
    assert measurement.latency.max_ms > 1000 * STALL_S * 0.9
    if case.arrivals:
        knows(measurement.latency, case)
    else:
        is_blind(measurement.latency, case)
    for kind in measurement.by_operation.values():
        if kind.service_time is not None:  # timed beside the intended send, and blind to the stop
            assert kind.service_time.blind_to_stalls
            if case.arrivals:
                is_blind(kind.service_time, case)
