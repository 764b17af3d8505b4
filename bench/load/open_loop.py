"""Open loop: whether asked rates are delivered and a stop of the server shows; and what 10,000 connections take."""

from __future__ import annotations

import json
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.load.cpu import REDIS_JOB
from bench.load.servers import Lab, Server, redis

RATES = (1_000, 10_000, 50_000, 100_000, 200_000)
STOP_RATES = (10, 100, 1_000, 20_000)
STOPPED_S, RUN_S = 2.0, 10.0
CONNECTIONS = 10_000
MEMORY_GOAL_MB = 64
ERROR_GOAL = 0.02
DELIVERED_GOAL, LAG_GOAL_US = 0.001, 100
POLL_US = 160


def truth_s(quantile: float) -> float:
    """The quantile of latency where arrivals are even and only the stop takes time.

    Of the arrivals of `RUN_S` those within the stop wait for its end, the first one for all of it.
    """
    return max(0.0, STOPPED_S - (1 - quantile) * RUN_S)


def delivered_row(
    rate: int, measures: Sequence[dict[str, Any]], polling: Sequence[dict[str, Any]], seconds: float
) -> str:
    """A line of the table of rates: medians of pairs, the worst share; beside it with polling."""
    share = min((measure["right"] / (rate * seconds) for measure in measures), key=lambda one: -abs(one - 1))
    missed = sum(measure["missed"] for measure in measures)
    (lag, cost), (lag_polling, cost_polling) = _lag_and_cost(measures), _lag_and_cost(polling)
    met = abs(share - 1) <= DELIVERED_GOAL and lag < LAG_GOAL_US
    return (
        f"| {rate:,} | {share:.4%} | {missed} | {lag:.0f} | {cost:.1f} | {lag_polling:.0f} | {cost_polling:.1f} "
        f"| {'met' if met else 'missed'} |"
    )


def _lag_and_cost(measures: Sequence[dict[str, Any]]) -> list[float]:
    """Medians of the 99th percentile of lag, and of the CPU time of an operation; microseconds."""
    lags = [measure["lag_ns"]["p99"] / 1000 for measure in measures if measure["lag_ns"]]
    costs = [measure["usage"]["cpu_ns"] / measure["right"] / 1000 for measure in measures if measure["right"]]
    return [statistics.median(values) if values else float("nan") for values in (lags, costs)]


def stop_row(program: str, rate: int, found_s: Mapping[str, float]) -> str:
    """A line of the table of stops: what was found, and the truth."""
    parts = []
    worst = 0.0
    for name, quantile in (("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)):
        truth = truth_s(quantile)
        if name not in found_s:
            parts.append("not told")
        else:
            error = found_s[name] / truth - 1
            worst = max(worst, abs(error))
            parts.append(f"{found_s[name]:.3f} s of {truth:.3f} s ({error:+.1%})")
    met = "met" if worst <= ERROR_GOAL else "missed"
    return f"| {program} | {rate:,} | " + " | ".join(parts) + f" | {met if program == 'tare-load' else ''} |"


def rates(lab: Lab, seconds: float, pairs: int) -> list[str]:
    """Asked and delivered rate, arrivals missed, and the lag of the schedule, without polling and with."""
    head = "| asked, 1/s | delivered | missed | p99 of schedule lag, µs | CPU an operation, µs "
    table = [
        f"{head}| lag with polling | CPU with | goal: within 0.1 %, < 100 µs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with redis(lab.server_cpu) as server:
        for rate in RATES:
            words = _open(lab, server, rate, seconds)
            calls = {"polls": [*words, "--poll-us", str(POLL_US)], "sleeps": words}
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in calls}
            for pair in range(pairs):
                for name in sorted(calls, reverse=pair % 2 == 1):
                    found[name].append(_measure(calls[name], lab.client_cpu))
            table.append(delivered_row(rate, found["sleeps"], found["polls"], seconds))
    return table


def _open(lab: Lab, server: Server, rate: int, seconds: float) -> list[str]:
    job = lab.written("redis.yaml", REDIS_JOB)
    words = [str(lab.load), "run", "--protocol", "redis", "--address", f"127.0.0.1:{server.port}", "--job", job]
    return [
        *words,
        "--connections",
        "50",
        "--depth",
        "16",
        "--rate",
        str(rate),
        "--duration",
        str(seconds),
    ]


def _measure(words: Sequence[str], cpu: int) -> dict[str, Any]:
    done = subprocess.run(["taskset", "-c", str(cpu), *words], check=True, timeout=120, capture_output=True)
    measure: dict[str, Any] = json.loads(done.stdout)["measure"]
    return measure


def stops(lab: Lab) -> list[str]:
    """The server is stopped for 2 s of 10 s: what tare-load says of it."""
    table = ["| program | 1/s | p95 | p99 | p99.9 | goal: within 2 % |", "|---|---|---|---|---|---|"]
    with redis(lab.server_cpu) as server:
        for rate in STOP_RATES:
            words = _open(lab, server, rate, RUN_S)
            latency = json.loads(stopped(words, lab.client_cpu, server))["measure"]["latency_ns"]
            seconds = {name: latency[name] / 1e9 for name in ("p95", "p99", "p99.9") if latency[name] is not None}
            table.append(stop_row("tare-load", rate, seconds))
    return table


def stopped(words: Sequence[str], cpu: int, server: Server) -> str:
    """What a client prints that was 4 s old when its server was stopped for `STOPPED_S`."""
    command = ["taskset", "-c", str(cpu), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
        time.sleep(4)
        server.signal_all(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        server.signal_all(signal.SIGCONT)
        return client.communicate(timeout=120)[0]


def memory(lab: Lab) -> list[str]:
    """The most memory that each client has with 10,000 connections (`VmHWM`)."""
    table = ["| program, 10,000 connections | most memory, MB | goal |", "|---|---|---|"]
    with redis(lab.server_cpu) as server:
        job = lab.written("redis.yaml", REDIS_JOB)
        ours = [str(lab.load), "run", "--protocol", "redis", "--address", f"127.0.0.1:{server.port}", "--job", job]
        theirs = ["redis-benchmark", "-p", str(server.port), "-q"]
        commands = {
            "tare-load": [*ours, "--connections", str(CONNECTIONS), "--operations", "100000"],
            "redis-benchmark": [*theirs, "-c", str(CONNECTIONS), "-n", "100000", "GET", "key:1"],
        }
        for name, words in commands.items():
            most = _most_mb(words, lab.client_cpu)
            goal = (
                f"{MEMORY_GOAL_MB}: {'met' if most <= MEMORY_GOAL_MB else 'missed'}" if name == "tare-load" else ""
            )
            table.append(f"| {name} | {most:.1f} | {goal} |")
    return table


def _most_mb(words: Sequence[str], cpu: int) -> float:
    """The kernel's high-water mark, read until the process is gone."""
    most_kib = 0
    command = ["taskset", "-c", str(cpu), *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        deadline = time.monotonic() + 120
        while client.poll() is None:
            if time.monotonic() > deadline:
                client.kill()
                raise TimeoutError(f"{words[0]} does not end")
            try:
                status = Path(f"/proc/{client.pid}/status").read_text()
            except OSError:
                break
            match = re.search(r"VmHWM:\s+(\d+) kB", status)
            most_kib = max(most_kib, int(match[1]) if match and "taskset" not in status else 0)
            time.sleep(0.02)
    if client.returncode != 0:
        raise RuntimeError(f"{words[0]} failed with {client.returncode}")
    return most_kib * 1024 / 1e6
