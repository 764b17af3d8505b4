"""What other generators make of a rate: how much of it they deliver, and what they say of a server that stops."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.load.open_loop import RUN_S, stopped
from bench.load.servers import Lab, Server, mariadb, missing, postgresql, program, redis, sysbench_words

QUANTILES: Mapping[str, float] = {"p95": 0.95, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True)
class PeerResult:
    """What a run came to, as far as the program tells: operations `done`, and which of `QUANTILES`."""

    done: int | None
    quantiles_s: Mapping[str, float]


@dataclass(frozen=True)
class Paced:
    """A generator that takes a rate. `arrivals`: how they lie apart, by which the number of a run's own varies."""

    name: str
    program: str
    arrivals: str
    serve: Callable[[int], AbstractContextManager[Server]]
    words: Callable[[int, int, float, Path], list[str]]
    """Port, rate, seconds, scratch directory → its call."""
    read: Callable[[str, Path], PeerResult]
    """Its output, scratch directory → what it tells."""

    @property
    def lacking(self) -> str | None:
        """Why it cannot be called here."""
        return f"{self.program} is not installed" if missing([self.program]) else None


def memtier_words(port: int, rate: int, seconds: float, at: Path) -> list[str]:
    """A rate a connection, which is a whole number: as many connections as it has divisors for, 50 at most."""
    connections = next(count for count in (50, 40, 25, 20, 10, 5, 1) if rate % count == 0)
    key = ["--key-prefix=key:", "--key-minimum=1", "--key-maximum=1", "--ratio=0:1", "--hide-histogram"]
    return [
        program("memtier_benchmark"),
        "--server=127.0.0.1",
        f"--port={port}",
        *key,
        "--threads=1",
        f"--clients={connections}",
        f"--rate-limiting={rate // connections}",
        f"--test-time={seconds:.0f}",
        "--print-percentiles=95,99,99.9",
        f"--json-out-file={at / 'memtier.json'}",
    ]


def read_memtier(output: str, at: Path) -> PeerResult:
    """From its JSON."""
    del output
    totals = json.loads((at / "memtier.json").read_text())["ALL STATS"]["Totals"]
    percentiles = totals["Percentile Latencies"]
    names = {"p95": "p95.00", "p99": "p99.00", "p99.9": "p99.90"}
    return PeerResult(
        int(totals["Count"]), {name: percentiles[key] / 1000 for name, key in names.items() if key in percentiles}
    )


def rated_sysbench_words(port: int, rate: int, seconds: float, at: Path) -> list[str]:
    """`--rate`: Poisson arrivals."""
    del at
    words = ["sysbench", *sysbench_words(port), "--threads=50", f"--rate={rate}", f"--time={seconds:.0f}"]
    return [*words, "--percentile=99", "run"]


def read_sysbench(output: str, at: Path) -> PeerResult:
    """It tells one percentile of its histogram."""
    del at
    done, p99_ms = (
        re.search(pattern, output) for pattern in (r"transactions:\s+(\d+)", r"99th percentile:\s+([\d.]+)")
    )
    return PeerResult(int(done[1]) if done else None, {"p99": float(p99_ms[1]) / 1000} if p99_ms else {})


def pgbench_words(port: int, rate: int, seconds: float, at: Path) -> list[str]:
    """`--rate`: Poisson arrivals, each transaction in a log."""
    where = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-n", "-S", "-M", "prepared"]
    log = ["-l", f"--log-prefix={at / 'pgbench'}"]
    return ["pgbench", *where, *log, "-c", "16", "-j", "1", f"--rate={rate}", "-T", f"{seconds:.0f}", "postgres"]


def read_pgbench(output: str, at: Path) -> PeerResult:
    """The third column of its log is microseconds from the scheduled start."""
    del output
    lines = [line.split() for path in at.glob("pgbench.*") for line in path.read_text().splitlines()]
    seconds = sorted(int(line[2]) / 1e6 for line in lines)
    if len(seconds) < 2:
        return PeerResult(len(seconds) or None, {})
    cuts = statistics.quantiles(seconds, n=1000, method="inclusive")
    return PeerResult(
        len(seconds), {name: cuts[round(quantile * 1000) - 1] for name, quantile in QUANTILES.items()}
    )


PEERS = (
    Paced("memtier --rate-limiting", "memtier_benchmark", "even", redis, memtier_words, read_memtier),
    Paced("sysbench --rate", "sysbench", "Poisson", mariadb, rated_sysbench_words, read_sysbench),
    Paced("pgbench --rate", "pgbench", "Poisson", postgresql, pgbench_words, read_pgbench),
)


def share_row(peer: Paced, rate: int, latency: PeerResult, seconds: float) -> str:
    """A line of the table of delivered rates: beside the share how far chance alone takes it."""
    chance = f"± {2 / (rate * seconds) ** 0.5:.2%}" if peer.arrivals == "Poisson" else "none"
    delivered = "unknown" if latency.done is None else f"{latency.done / (rate * seconds):.3%}"
    return f"| {peer.name} | {rate:,} | {delivered} | {chance} |"


def rates(lab: Lab, seconds: float, asked: Sequence[int] = (1_000, 10_000, 50_000)) -> list[str]:
    """How much of a rate each delivers; one that fails says so."""
    table = ["| program | asked, 1/s | delivered | of it chance (2 standard deviations of Poisson arrivals) |"]
    table.append("|---|---|---|---|")
    for peer in PEERS:
        if peer.lacking:
            table.append(f"| {peer.name} | left out: {peer.lacking} | | |")
            continue
        with peer.serve(lab.server_cpu) as server:
            for number, rate in enumerate(asked):
                at = lab.scratch / f"{peer.program}-{number}"
                at.mkdir()
                try:
                    latency = peer.read(_output(peer.words(server.port, rate, seconds, at), lab.client_cpu), at)
                    table.append(share_row(peer, rate, latency, seconds))
                except (subprocess.CalledProcessError, OSError, ValueError, KeyError) as error:
                    table.append(f"| {peer.name} | {rate:,} | failed: {_first_line(error)} | |")
    return table


def stops(lab: Lab, asked: Sequence[int], row: Callable[[str, int, Mapping[str, float]], str]) -> list[str]:
    """Lines of the table of stops: what each says of a server that was stopped; `row` makes one."""
    lines = []
    for peer in PEERS:
        if peer.lacking:
            lines.append(f"| {peer.name} | left out: {peer.lacking} | | | | |")
            continue
        with peer.serve(lab.server_cpu) as server:
            for number, rate in enumerate(asked):
                at = lab.scratch / f"{peer.program}-stopped-{number}"
                at.mkdir()
                output = stopped(peer.words(server.port, rate, RUN_S, at), lab.client_cpu, server)
                try:
                    lines.append(row(f"{peer.name} ({peer.arrivals})", rate, peer.read(output, at).quantiles_s))
                except (OSError, ValueError, KeyError) as error:
                    lines.append(f"| {peer.name} | {rate:,} | failed: {_first_line(error)} | | | |")
    return lines


def _output(words: Sequence[str], cpu: int) -> str:
    done = subprocess.run(
        ["taskset", "-c", str(cpu), *words],
        check=True,
        timeout=120,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout.decode(errors="replace")


def _first_line(error: Exception) -> str:
    output: Any = getattr(error, "stdout", None)
    fatal = re.search(rb"FATAL: .*", output or b"")
    return fatal[0].decode(errors="replace") if fatal else str(error).splitlines()[0][:80]
