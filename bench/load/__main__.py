"""Client CPU of one Redis GET of 100 B: tare-load beside redis-benchmark, in interleaved pairs.

    python -m bench.load --load target/x86_64-unknown-linux-gnu/release/tare-load

Server and clients have a CPU each where the machine has two. The order within a pair alternates.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

JOB = "{format: 1, operations: [{name: get, steps: [{send: 'GET key:1', expect: {bytes: 100}}]}]}"


@dataclass(frozen=True)
class Case:
    """One kind of load and the goal for tare-load's CPU as a share of redis-benchmark's."""

    name: str
    connections: int
    depth: int
    operations: int
    goal: float


CASES = (
    Case("50 connections", 50, 1, 200_000, 0.70),
    Case("1 connection", 1, 1, 100_000, 0.85),
    Case("50 connections, pipeline 16", 50, 16, 2_000_000, 0.70),
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
        f"| {case.name} | {statistics.median(ours):.2f} | {statistics.median(theirs):.2f} "
        f"| {middle:.2f} ({low:.2f} to {high:.2f}) | {case.goal:.2f}: {met} |"
    )


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def redis(cpu: int) -> Iterator[int]:
    """A server without persistence on `cpu`, holding one value of 100 B; yields its port."""
    port = free_port()
    words = ["taskset", "-c", str(cpu), "redis-server", "--port", str(port), "--save", "", "--appendonly", "no"]
    with tempfile.TemporaryDirectory() as scratch:
        server = subprocess.Popen(words, cwd=scratch, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 10
            while True:
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
                        line.sendall(b"SET key:1 " + b"x" * 100 + b"\r\n")
                        if line.recv(16) == b"+OK\r\n":
                            break
                except ConnectionRefusedError:
                    if time.monotonic() > deadline:
                        raise
                time.sleep(0.05)
            yield port
        finally:
            server.terminate()
            server.wait(timeout=10)


def cpu_us(words: Sequence[str], cpu: int, operations: int) -> float:
    """CPU of the whole process, its start and connecting too, in microseconds an operation."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["taskset", "-c", str(cpu), *words], check=True, timeout=300, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6 / operations


def commands(case: Case, load: Path, job: Path, port: int) -> dict[str, list[str]]:
    """What each of the two is called with."""
    return {
        "tare-load": [
            *(str(load), "run", "--protocol", "redis", "--address", f"127.0.0.1:{port}", "--job", str(job)),
            *("--connections", str(case.connections), "--depth", str(case.depth)),
            *("--operations", str(case.operations)),
        ],
        "redis-benchmark": [
            *("redis-benchmark", "-p", str(port), "-q", "-c", str(case.connections), "-P", str(case.depth)),
            *("-n", str(case.operations), "GET", "key:1"),
        ],
    }


def main() -> None:
    """Measure and print; the table goes to `--markdown`, the figures to `--json`, where asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--load", type=Path, required=True)
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--markdown", type=Path)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    missing = [name for name in ("redis-server", "redis-benchmark", "taskset") if shutil.which(name) is None]
    if missing:
        sys.exit(f"bench.load: {', '.join(missing)} not installed, so nothing was measured")
    cpus = sorted(os.sched_getaffinity(0))
    table = [
        "| Redis GET 100 B | tare-load, µs an operation | redis-benchmark, µs | ratio (range of pairs) | goal |",
        "|---|---|---|---|---|",
    ]
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as scratch, redis(cpus[0]) as port:
        job = Path(scratch) / "job.yaml"
        job.write_text(JOB)
        for case in CASES:
            words = commands(case, chosen.load, job, port)
            costs: dict[str, list[float]] = {name: [] for name in words}
            for pair in range(chosen.pairs):
                for name in sorted(words, reverse=pair % 2 == 1):
                    costs[name].append(cpu_us(words[name], cpus[-1], case.operations))
            figures[case.name] = costs
            table.append(row(case, costs["tare-load"], costs["redis-benchmark"]))
    text = "\n".join(table) + "\n"
    print(text, end="")
    for path, content in ((chosen.markdown, text), (chosen.json, json.dumps(figures, indent=2) + "\n")):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


if __name__ == "__main__":
    main()
