"""Which figures tell the truth of a server that stands still: 1,000 operations/s for 10 s, stopped for 2 s.

Of the operations that were due, a fifth were due in the stop, and wait for what is left of it: p95 about 1.5 s, p99
about 1.9 s, whatever the generator. docs/reference/workloads/ tells what each one says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.mariadb_lab import make_lab

from tare.sites.engine import connect
from tare.workloads import Latency, Measurement

pytestmark = [pytest.mark.engine, pytest.mark.slow]

RATE, SECONDS, STALL_S = 1000, 10, 2.0
P95_MS, P99_MS, WITHIN = 1500.0, 1900.0, 0.15
"""Truth, and how far from it a figure may be: clients start late and work off what has waited."""
BLIND_MS = 200.0
"""A p99 below it does not know of the stop."""


@dataclass(frozen=True)
class Case:
    """One way to load. `arrivals`: operations are due whether or not earlier ones are done."""

    workload: str
    image: str
    arrivals: bool
    asked: Mapping[str, Any] = field(default_factory=dict)


YCSB = {"core_workload": "c", "records": 1000, "threads": 8}
SYSBENCH = {"script": "oltp_point_select", "tables": 1, "table_size": 1000, "threads": 8}
CASES = {
    "sysbench-closed": Case("sysbench", "sysbench", arrivals=False, asked=SYSBENCH),
    "sysbench-rate": Case("sysbench", "sysbench", arrivals=True, asked={**SYSBENCH, "rate": RATE}),
    "ycsb-closed": Case("ycsb", "ycsb", arrivals=False, asked=YCSB),
    "ycsb-target": Case("ycsb", "ycsb", arrivals=True, asked={**YCSB, "target": RATE}),
}
"""Every generator that is offered, in each of its loops; a new one gets its line here."""


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


def stalled(case: Case, engine: DockerClient, home: Path, out: Path) -> Measurement:
    lab = make_lab(engine, home, case.workload, case.image)
    with lab.run(lab.settings("bare", "bare", **case.asked, measure_s=SECONDS)) as run:
        client, command = run.start("measure")
        run.stall(SECONDS / 2, STALL_S)
        code = client.wait(run.bench.machine.clock, command.timeout_s, lambda: None)
        client.stop()
        return run.parse(code, out)


def knows(latency: Latency) -> None:
    assert latency.p95_ms == pytest.approx(P95_MS, rel=WITHIN)
    assert latency.p99_ms == pytest.approx(P99_MS, rel=WITHIN)


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_to_be_blind_is_and_what_is_said_to_see_does(
    name: str, engine: DockerClient, tmp_path: Path
) -> None:
    case = CASES[name]
    told = stalled(case, engine, tmp_path / "home", tmp_path)
    assert told.latency.blind_to_stalls is not case.arrivals
    assert told.latency.max_ms is not None
    assert told.latency.max_ms > 1000 * STALL_S * 0.9
    if case.arrivals:
        knows(told.latency)
    else:
        assert told.latency.p99_ms is not None
        assert told.latency.p99_ms < BLIND_MS
    for kind in told.by_operation.values():
        if kind.service_time is not None:  # timed beside the intended send, and blind to the stop
            assert kind.service_time.blind_to_stalls
            assert kind.service_time.p99_ms is not None
            assert case.arrivals is False or kind.service_time.p99_ms < BLIND_MS
