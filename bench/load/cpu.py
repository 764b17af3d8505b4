"""Client CPU of one operation: tare-load beside a peer, in interleaved pairs whose order alternates."""

from __future__ import annotations

import resource
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bench.load.servers import ROWS, Lab, Server, mariadb, postgresql, redis, sysbench_words

REDIS_JOB = "{format: 1, operations: [{name: get, steps: [{send: 'GET key:1', expect: {bytes: 100}}]}]}"
PGBENCH_JOB = (
    f"{{format: 1, generators: {{aid: {{uniform: {{from: 1, to: {ROWS}}}}}}}, operations: [{{name: select, steps: "
    "[{send: 'SELECT abalance FROM pgbench_accounts WHERE aid = {aid}', expect: {rows: 1}}]}]}"
)


@dataclass(frozen=True)
class Case:
    """One kind of load and the goal for tare-load's CPU as a share of the peer's."""

    name: str
    serve: Callable[[int], AbstractContextManager[Server]]
    peer: str
    connections: int
    depth: int
    operations: int
    goal: float


CASES = (
    Case("Redis GET 100 B, 50 connections", redis, "redis-benchmark", 50, 1, 200_000, 0.70),
    Case("Redis GET 100 B, 1 connection", redis, "redis-benchmark", 1, 1, 100_000, 0.85),
    Case("Redis GET 100 B, 50 connections, pipeline 16", redis, "redis-benchmark", 50, 16, 2_000_000, 0.70),
    Case("MariaDB point select, 16 connections", mariadb, "sysbench", 16, 1, 100_000, 0.75),
    Case("PostgreSQL point select, 16 connections", postgresql, "pgbench", 16, 1, 100_000, 0.85),
)
HEAD = (
    "| operation | tare-load, µs (median) | peer, µs | ratio (range of pairs) | goal |",
    "|---|---|---|---|---|",
)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Median, least and greatest of the ratios of the pairs."""
    ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def row(case: Case, ours: Sequence[float], theirs: Sequence[float]) -> str:
    """A line of the table: medians in microseconds, the ratio with its range, the goal."""
    middle, low, high = ratio(ours, theirs)
    met = "met" if middle <= case.goal else "missed"
    return (
        f"| {case.name} | {statistics.median(ours):.2f} | {case.peer}: {statistics.median(theirs):.2f} "
        f"| {middle:.2f} ({low:.2f} to {high:.2f}) | {case.goal:.2f}: {met} |"
    )


def commands(case: Case, lab: Lab, port: int, scale: float) -> dict[str, list[str]]:
    """What each of the two is called with; `scale` of the case's operations are sent."""
    count = max(1, round(case.operations * scale))
    ours = [str(lab.load), "run", "--address", f"127.0.0.1:{port}", "--operations", str(count)]
    ours += ["--connections", str(case.connections), "--depth", str(case.depth)]
    if case.peer == "redis-benchmark":
        job = lab.written("redis.yaml", REDIS_JOB)
        load_of = ["-c", str(case.connections), "-P", str(case.depth), "-n", str(count)]
        return {
            "tare-load": [*ours, "--protocol", "redis", "--job", job],
            case.peer: ["redis-benchmark", "-p", str(port), "-q", *load_of, "GET", "key:1"],
        }
    if case.peer == "sysbench":
        table = ["--database", "sbtest", "--sysbench", "oltp_point_select", "--table-size", str(ROWS)]
        sent = [f"--threads={case.connections}", f"--events={count}", "--time=0"]
        return {
            "tare-load": [*ours, "--protocol", "mysql", *table],
            case.peer: ["sysbench", *sysbench_words(port), *sent, "run"],
        }
    job = lab.written("pgbench.yaml", PGBENCH_JOB)
    where = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-n"]
    sent = ["-S", "-M", "prepared", "-c", str(case.connections), "-t", str(max(1, count // case.connections))]
    return {
        "tare-load": [*ours, "--protocol", "postgresql", "--user", "postgres", "--job", job],
        case.peer: ["pgbench", *where, *sent, "postgres"],
    }


def cpu_us(words: Sequence[str], cpu: int, operations: int) -> float:
    """CPU of the whole process, its start and connecting too, in microseconds an operation."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["taskset", "-c", str(cpu), *words], check=True, timeout=300, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6 / operations


def measure(cases: Iterable[Case], lab: Lab, pairs: int, scale: float) -> dict[str, dict[str, list[float]]]:
    """Microseconds an operation of each pair, by case and program."""
    figures: dict[str, dict[str, list[float]]] = {}
    for case in cases:
        with case.serve(lab.server_cpu) as server:
            words = commands(case, lab, server.port, scale)
            costs: dict[str, list[float]] = {name: [] for name in words}
            for pair in range(pairs):
                for name in sorted(words, reverse=pair % 2 == 1):
                    count = max(1, round(case.operations * scale))
                    costs[name].append(cpu_us(words[name], lab.client_cpu, count))
        figures[case.name] = costs
    return figures
