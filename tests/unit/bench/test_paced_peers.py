"""What `bench.load.paced_peers` reads of other generators' own output, and how it asks them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.load.paced_peers import (
    PEERS,
    PeerResult,
    memtier_words,
    read_memtier,
    read_pgbench,
    read_sysbench,
    share_row,
)

SYSBENCH = """
SQL statistics:
    transactions:                        9874   (987.21 per sec.)
Latency (ms):
         99th percentile:                     1869.60
"""


@pytest.mark.parametrize(("rate", "connections"), [(10, 10), (100, 50), (1_000, 50), (20_000, 50), (7, 1)])
def test_memtier_s_rates_of_connections_add_up(rate: int, connections: int, tmp_path: Path) -> None:
    words = memtier_words(6379, rate, 10.0, tmp_path)
    assert f"--clients={connections}" in words
    assert f"--rate-limiting={rate // connections}" in words


def test_each_tells_what_it_knows(tmp_path: Path) -> None:
    totals = {"Count": 10_000, "Percentile Latencies": {"p95.00": 1507.5, "p99.00": 1900.5, "p99.90": 1990.0}}
    (tmp_path / "memtier.json").write_text(json.dumps({"ALL STATS": {"Totals": totals}}))
    assert read_memtier("", tmp_path) == PeerResult(10_000, {"p95": 1.5075, "p99": 1.9005, "p99.9": 1.99})
    assert read_sysbench(SYSBENCH, tmp_path) == PeerResult(9874, {"p99": 1.8696})
    assert read_sysbench("FATAL: The event queue is full.", tmp_path) == PeerResult(None, {})


def test_pgbench_s_quantiles_are_those_of_its_log(tmp_path: Path) -> None:
    assert read_pgbench("", tmp_path) == PeerResult(None, {})
    lines = [f"0 {n} {n * 1000} 0 1795000000 {n} 12" for n in range(1, 1001)]
    (tmp_path / "pgbench.123").write_text("\n".join(lines[:600]) + "\n")
    (tmp_path / "pgbench.123.1").write_text("\n".join(lines[600:]) + "\n")
    measurement = read_pgbench("", tmp_path)
    assert measurement.done == 1000
    assert measurement.quantiles_s["p95"] == pytest.approx(0.950, abs=0.001)
    assert measurement.quantiles_s["p99.9"] == pytest.approx(0.999, abs=0.001)


def test_poisson_arrivals_vary_by_chance() -> None:
    even, poisson = PEERS[0], PEERS[1]
    assert (
        share_row(even, 1_000, PeerResult(2_997, {}), 3.0) == "| memtier --rate-limiting | 1,000 | 99.900% | none |"
    )
    assert share_row(poisson, 1_000, PeerResult(2_997, {}), 3.0).endswith("| 99.900% | ± 3.65% |")
    assert share_row(poisson, 1_000, PeerResult(None, {}), 3.0).endswith("| unknown | ± 3.65% |")
