"""Seconds that a real run takes before its first operation and after its last one.

    python -m bench.overhead [--turns 5] [--database mariadb ...] [--markdown FILE]

In turns, for each database: a study of a bare and a container arm (`tare run`: three runs of a few seconds, one of
them the control), then the server alone on the same data in each deployment. The minimum is the time from the start
of the server's process until it answers on its port. The time to make that process has a column of its own.
Needs root and a container engine.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from uuid import uuid4

from bench.tables import show
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.run.attempt.context import Images, RunContext
from tare.run.attempt.directory import WorkDirectory, clear_work_directory, make_work_directory
from tare.run.attempt.loading import ensure_snapshot, loader_of
from tare.run.attempt.ports import free_ports
from tare.run.attempt.raw_files import new_secrets
from tare.run.attempt.snapshot import copy_snapshot
from tare.run.local import local_engine, local_machine
from tare.run.machine import Machine
from tare.sites.process import TICKS_PER_S
from tare.store import open_store

GOAL_S = 2.0
_TIMEOUT_S, _ANSWER_S = 900.0, 120.0
_STUDY = """\
format: 1
name: overhead-{name}
question: How long does a run take beside its measurement?
sut: {{{sut}, deployment: bare, network: host}}
client: {{image: {client}, deployment: bare, network: host}}
workload: {{{workload}, measure_s: 3, window_s: 1}}
protocol: {{name: fixed, blocks: 1, seed: {seed}}}
factors:
  sut: {{sets: sut.deployment, levels: {{bare: bare, container: container}}}}
baseline: bare
"""
_HEAD = (
    "| database | deployment | run's start to client's start | client's end to next run's start "
    "| server's own start until it answers | over that (smallest to largest) | client's own start and end "
    "| made by its deployment |\n"
    "|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Subject:
    """A database with its study. `hello`: what a client sends first; empty where the server does."""

    sut: str
    client: str
    workload: str
    hello: bytes

    def study(self, name: str, seed: int) -> str:
        """The study file."""
        return _STUDY.format(name=name, sut=self.sut, client=self.client, workload=self.workload, seed=seed)


SUBJECTS: Mapping[str, Subject] = {
    "mariadb": Subject(
        sut="image: mariadb, database: mariadb, settings: {innodb_buffer_pool_size: 64M}",
        client="sysbench",
        workload="name: sysbench, script: oltp_point_select, tables: 1, table_size: 10_000, threads: 2",
        hello=b"",
    ),
    "cassandra": Subject(
        sut="image: cassandra-3.11, database: cassandra, settings: {heap: 512M}",
        client="cassandra-3.11",
        workload="name: cassandra-stress, command: read, records: 1_000, threads: 4",
        hello=bytes.fromhex("040000000500000000"),  # OPTIONS of the native protocol's version 4
    ),
}


@dataclass
class Times:
    """Seconds, a value a run: `before` the client's start, its own start and end (`client`), `after` it.

    `beside`: both together, of each run that another followed. `server`, `made`: a value a turn, the server alone.
    """

    before: list[float] = field(default_factory=list)
    client: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)
    made: list[float] = field(default_factory=list)

    @property
    def over(self) -> list[float]:
        """Seconds of each run over the server's own start, sorted."""
        return sorted(seconds - median(self.server) for seconds in self.beside)


def add_runs(records: Sequence[RunRecord], times: Mapping[str, Times]) -> None:
    """Add the records of one session."""
    for record in records:
        phase = record.usage and record.usage.phase
        lasted_s = record.measurement and record.measurement.duration_s
        if not record.outcome.ok or phase is None or lasted_s is None:
            sys.exit(f"bench.overhead: {record.run_id} failed: {record.outcome.reason}")
        one = times[record.settings["sut"]["deployment"]]
        one.before.append(phase.began_s - _start(record))
        one.client.append(phase.ended_s - phase.began_s - lasted_s)
    for record, following in pairwise(records):
        measured, one = record.usage and record.usage.phase, times[record.settings["sut"]["deployment"]]
        if measured is None:
            continue
        one.after.append(_start(following) - measured.ended_s)
        one.beside.append(measured.began_s - _start(record) + one.after[-1])


def _start(record: RunRecord) -> float:
    at = record.phases[0].monotonic_s
    if at is None:
        sys.exit(f"bench.overhead: {record.run_id} does not tell when it began")
    return at


def alone(machine: Machine, plan: Plan, arm: str, hello: bytes) -> tuple[float, float]:
    """Seconds of an arm's server on a copy of the data like that of a run: to its start, then to its answer."""
    settings, host, token = plan.arm(arm).settings, machine.site.sut, uuid4().hex[:12]
    images = Images(sut=machine.own.prepare(settings.sut.image), client=None)
    workdir = WorkDirectory(host, f"{machine.layout.work}/{token}")
    snapshot = ensure_snapshot(machine, loader_of(plan, settings), images)
    try:
        make_work_directory(workdir, machine.ledger)
        bench = RunContext(machine, settings, images, workdir, token, free_ports(host, token), new_secrets())
        (node,) = bench.nodes
        copy_snapshot(host, snapshot, workdir.data, node.part)
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        server = bench.start_server(node)
        try:
            _wait(bench.ports[0], hello, lambda: server.must_live("before it answered"))
            started = server.instance.process.started_ticks / TICKS_PER_S
            return started - began, time.clock_gettime(time.CLOCK_BOOTTIME) - started
        finally:
            server.stop(0.0)
    finally:
        clear_work_directory(workdir, machine.ledger)


def _wait(port: int, hello: bytes, check: Callable[[], None]) -> None:
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        check()
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S) as connection:
                connection.sendall(hello)
                if connection.recv(1):
                    return
        except OSError:
            pass
        time.sleep(0.005)
    sys.exit(f"bench.overhead: nothing answered on port {port} within {_ANSWER_S:g} s")


def turn(name: str, subject: Subject, number: int, times: Mapping[str, Times]) -> None:
    """One session of runs, then the servers alone."""
    with tempfile.TemporaryDirectory(prefix="tare-bench-overhead-") as scratch, local_engine() as engine:
        path = Path(scratch) / "study.yaml"
        path.write_text(subject.study(name, number))
        words = ("run", str(path), "--store", f"{scratch}/store", "--quiet")
        done = subprocess.run(
            [sys.executable, "-m", "tare", *words], check=False, timeout=_TIMEOUT_S, capture_output=True, text=True
        )
        if not Path(scratch, "store").is_dir():
            sys.exit(f"bench.overhead: {done.stderr.strip()}")
        made = open_store(Path(scratch) / "store")
        add_runs(made.records(), times)
        machine = local_machine(made.plan, engine)
        for arm in ("bare", "container"):
            made_s, server_s = alone(machine, made.plan, arm, subject.hello)
            times[arm].made.append(made_s)
            times[arm].server.append(server_s)


def rows(name: str, times: Mapping[str, Times]) -> Iterator[str]:
    """A database's rows of the table."""
    for deployment, one in times.items():
        if one.after:
            medians = [median(each) for each in (one.before, one.after, one.server, one.client, one.made)]
            over = f"**{medians[0] + medians[1] - medians[2]:.2f}** ({one.over[0]:.2f} to {one.over[-1]:.2f})"
            before, after, server, client, made = (f"{value:.2f}" for value in medians)
            yield f"| {name} | {deployment} | {before} | {after} | {server} | {over} | {client} | {made} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--database", choices=sorted(SUBJECTS), nargs="+", default=list(SUBJECTS))
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    times = {name: {"bare": Times(), "container": Times()} for name in asked.database}
    before = os.getloadavg()[0]
    for number in range(1, asked.turns + 1):
        for name in asked.database:
            turn(name, SUBJECTS[name], number, times[name])
            sys.stderr.write(f"bench.overhead: turn {number} of {asked.turns}, {name}\n")
    summary = (
        f"Medians of {asked.turns} turns, seconds; load {before:.1f} before and {os.getloadavg()[0]:.1f} after, "
        f"on {os.cpu_count()} CPUs. Goal: a run and the way to the next one take {GOAL_S:g} s more than the "
        "server's own start. The client's own start and end are the tool's."
    )
    text = "\n".join((summary, "", _HEAD, *(row for name, each in times.items() for row in rows(name, each)), ""))
    show(text, asked.markdown)


if __name__ == "__main__":
    main()
