"""Client CPU of one operation: tare-load beside a peer, in interleaved pairs whose order alternates."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.load import java
from bench.load.servers import (
    ROWS,
    Lab,
    Server,
    mariadb,
    missing,
    postgresql,
    program,
    redis,
    sysbench_server,
    sysbench_words,
)

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
    goal: float | None
    """`None`: the issue sets none."""
    script: str = "select-only"
    """What pgbench runs."""


YCSB, STRESS, MEMTIER, LATTE, TPCC = "YCSB", "cassandra-stress", "memtier", "latte", "sysbench-tpcc"
BUILT = "and this Debian has no package of it: bench/README.md tells how to build it"
YCSB_READS = ("recordcount=1000", "fieldcount=1", "fieldlength=100", "readproportion=1", "updateproportion=0")

CASES = (
    Case("Redis GET 100 B, 50 connections", redis, "redis-benchmark", 50, 1, 200_000, 0.70),
    Case("Redis GET 100 B, 1 connection", redis, "redis-benchmark", 1, 1, 100_000, 0.85),
    Case("Redis GET 100 B, 50 connections, pipeline 16", redis, "redis-benchmark", 50, 16, 2_000_000, 0.70),
    Case("MariaDB point select, 16 connections", mariadb, "sysbench", 16, 1, 100_000, 0.75),
    Case("PostgreSQL point select, 16 connections", postgresql, "pgbench", 16, 1, 100_000, 0.85),
    Case("PostgreSQL tpcb-like, 16 connections", postgresql, "pgbench", 16, 1, 10_000, None, "tpcb-like"),
    Case("PostgreSQL simple-update, 16 connections", postgresql, "pgbench", 16, 1, 10_000, None, "simple-update"),
    Case("MariaDB TPC-C, 1 warehouse, 4 connections", mariadb, TPCC, 4, 1, 2_000, None),
    Case("Redis GET 100 B, 50 connections", redis, MEMTIER, 50, 1, 200_000, None),
    Case("Redis YCSB read 100 B, 50 connections", redis, YCSB, 50, 1, 200_000, 0.45),
    Case("MariaDB YCSB read 100 B, 16 connections", mariadb, YCSB, 16, 1, 100_000, 0.75),
    Case("CQL read, 64 in flight", java.cassandra, STRESS, 1, 64, 200_000, 0.05),
    Case("CQL read, 64 in flight", java.cassandra, LATTE, 1, 64, 200_000, 0.30),
)


def chosen(words: Sequence[str]) -> list[Case]:
    """The cases that have one of these words in name or peer; all where there are none."""
    return [case for case in CASES if not words or any(word in f"{case.name} {case.peer}" for word in words)]


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
    goal = "none" if case.goal is None else f"{case.goal:.2f}: {'met' if middle <= case.goal else 'missed'}"
    return (
        f"| {case.name} | {statistics.median(ours):.2f} | {case.peer}: {statistics.median(theirs):.2f} "
        f"| {middle:.2f} ({low:.2f} to {high:.2f}), {len(ours)} pairs | {goal} |"
    )


def lacking(case: Case) -> str | None:
    """Why a case cannot be measured here; `None`: it can."""
    if case.peer == MEMTIER and missing(["memtier_benchmark"]):
        return f"memtier_benchmark is neither in PATH nor in PEERS, {BUILT}"
    if case.peer == LATTE and missing(["latte"]):
        return f"latte is neither in PATH nor in PEERS, {BUILT}"
    if case.peer == TPCC and _scripts_of_tpcc() is None:
        return "tpcc.lua is not in PEERS: clone github.com/Percona-Lab/sysbench-tpcc"
    if case.peer == YCSB and java.ycsb_jars() is None:
        return "YCSB is built by Maven and a JDK, which are not installed"
    if case.peer in (STRESS, LATTE) and java.cassandra_root() is None:
        return "Cassandra comes with the image: `tare images build cassandra-3.11`, then run this as root"
    return None


def commands(case: Case, lab: Lab, port: int, scale: float) -> dict[str, list[str]]:
    """What each of the two is called with; `scale` of the case's operations are sent."""
    count = max(1, round(case.operations * scale))
    ours = [str(lab.load), "run", "--address", f"127.0.0.1:{port}", "--operations", str(count)]
    ours += ["--connections", str(case.connections), "--depth", str(case.depth)]
    if case.peer == YCSB:
        return _beside_ycsb(case, ours, port, count)
    if case.peer in (STRESS, LATTE):
        properties = [word for name, value in java.READS.items() for word in ("-p", f"{name}={value}")]
        if case.peer == STRESS:
            theirs = java.inside(java.cassandra_root() or java.ROOT, java.stress(f"read n={count}", case.depth))
        else:
            asked = ["--duration", str(count), "--concurrency", str(case.depth), "--threads", "1"]
            theirs = java.latte("run", *asked, "--output", str(lab.scratch / "latte.json"))
        return {"tare-load": [*ours, "--protocol", "cql", *properties], case.peer: theirs}
    if case.peer == MEMTIER:
        key = ["--key-prefix=key:", "--key-minimum=1", "--key-maximum=1", "--ratio=0:1", "--hide-histogram"]
        load_of = ["--threads=1", f"--clients={case.connections}", f"--requests={count // case.connections}"]
        return {
            "tare-load": [*ours, "--protocol", "redis", "--job", lab.written("redis.yaml", REDIS_JOB)],
            case.peer: [program("memtier_benchmark"), "--server=127.0.0.1", f"--port={port}", *key, *load_of],
        }
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
    return _beside_tpcc(case, ours, port) if case.peer == TPCC else _beside_pgbench(case, lab, ours, port)


def _beside_pgbench(case: Case, lab: Lab, ours: Sequence[str], port: int) -> dict[str, list[str]]:
    count = int(ours[ours.index("--operations") + 1])
    reads = case.script == "select-only"
    asked = ["--job", lab.written("pgbench.yaml", PGBENCH_JOB)] if reads else ["--pgbench", case.script]
    where = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-n"]
    each = str(max(1, count // case.connections))
    sent = ["-b", case.script, "-M", "prepared", "-c", str(case.connections), "-t", each]
    return {
        "tare-load": [*ours, "--protocol", "postgresql", "--user", "postgres", *asked],
        case.peer: ["pgbench", *where, *sent, "postgres"],
    }


def _beside_tpcc(case: Case, ours: Sequence[str], port: int) -> dict[str, list[str]]:
    """Both use the tables that `fill` has made."""
    count = int(ours[ours.index("--operations") + 1])
    table = ["--database", "sbtest", "--tpcc", "1", "--max-tries", "1000"]
    at = _scripts_of_tpcc()
    script = ["env", f"LUA_PATH={at}/?.lua;;", "sysbench", f"{at}/tpcc.lua", "--scale=1", "--use_fk=0"]
    sent = [f"--threads={case.connections}", f"--events={count}", "--time=0"]
    return {
        "tare-load": [*ours, "--protocol", "mysql", *table],
        case.peer: [*script, *sysbench_server(port), *sent, "run"],
    }


def _scripts_of_tpcc() -> Path | None:
    """Directory of sysbench-tpcc, which no registry has."""
    places = (Path(place).absolute() for place in os.environ.get("PEERS", "").split(":") if place)
    return next((place for place in places if (place / "tpcc.lua").is_file()), None)


def _beside_ycsb(case: Case, ours: Sequence[str], port: int, count: int) -> dict[str, list[str]]:
    """Both read the records that `filled` has loaded."""
    jars = java.ycsb_jars() or ""
    properties = [word for each in YCSB_READS for word in ("-p", each)]
    if case.serve is redis:
        wanted: tuple[str, ...] = (*YCSB_READS, "redis.host=127.0.0.1", f"redis.port={port}")
        theirs = java.ycsb_words(jars, "RedisBinding", case.connections, count, wanted)
        return {"tare-load": [*ours, "--protocol", "redis", *properties], case.peer: theirs}
    url = f"db.url=jdbc:mariadb://127.0.0.1:{port}/sbtest"
    wanted = (*YCSB_READS, "db.driver=org.mariadb.jdbc.Driver", url, "db.user=root", "db.passwd=")
    theirs = java.ycsb_words(jars, "JdbcBinding", case.connections, count, wanted)
    return {"tare-load": [*ours, "--protocol", "mysql", "--database", "sbtest", *properties], case.peer: theirs}


def fill(case: Case, lab: Lab, port: int) -> None:
    """Load what the case reads, where its server has not done so."""
    where = [str(lab.load), "load", "--address", f"127.0.0.1:{port}", "--connections", "4"]
    if case.peer in (STRESS, LATTE):
        own = ["--protocol", "cql", "-p", "cassandra.createtable=true"]
        wanted: Sequence[str] = [f"{name}={value}" for name, value in java.READS.items()]
    elif case.peer == TPCC:
        own, wanted = ["--protocol", "mysql", "--database", "sbtest", "--tpcc", "1", "--reply-limit", "100"], ()
    elif case.peer == YCSB and case.serve is redis:
        own, wanted = ["--protocol", "redis"], YCSB_READS
    elif case.peer == YCSB:
        own, wanted = ["--protocol", "mysql", "--database", "sbtest", "-p", "jdbc.createtable=true"], YCSB_READS
    else:
        return
    if case.peer == LATTE:
        for command in ("schema", "load"):
            subprocess.run(java.latte(command), check=True, timeout=300, capture_output=True, cwd=lab.scratch)
    words = [*where, *own, *(word for each in wanted for word in ("-p", each))]
    subprocess.run(words, check=True, timeout=300, capture_output=True, cwd=lab.scratch)


def cpu_us(words: Sequence[str], cpu: int, operations: int, at: Path) -> float:
    """CPU of the whole process, its start and connecting too, in microseconds an operation.

    `at`: its working directory, as some write logs into it.
    `ValueError`: tare-load had a wrong or missing answer, so its figure would be none of this operation.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pinned = ["taskset", "-c", str(cpu), *words]
    ended = subprocess.run(pinned, check=True, timeout=300, capture_output=True, cwd=at)
    if Path(words[0]).name == "tare-load" and (right := json.loads(ended.stdout)["measure"]["right"]) != operations:
        raise ValueError(f"tare-load has {right} right answers of {operations}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6 / operations


@dataclass(frozen=True)
class Effort:
    """How many pairs of which share of a case's operations; after `most_s` no further pair begins."""

    pairs: int
    scale: float
    most_s: float


def measure(case: Case, lab: Lab, effort: Effort) -> dict[str, list[float]]:
    """Microseconds an operation of each pair, by program."""
    count = max(1, round(case.operations * effort.scale))
    with case.serve(lab.server_cpu) as server:
        fill(case, lab, server.port)
        words = commands(case, lab, server.port, effort.scale)
        costs: dict[str, list[float]] = {name: [] for name in words}
        until = time.monotonic() + effort.most_s
        for pair in range(effort.pairs):
            if pair > 0 and time.monotonic() > until:
                break
            for name in sorted(words, reverse=pair % 2 == 1):
                costs[name].append(cpu_us(words[name], lab.client_cpu, count, lab.scratch))
    return costs
