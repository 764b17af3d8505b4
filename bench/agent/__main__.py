"""Time of calls through the agent and over plain SSH, and what the agent costs while nothing is asked.

    python -m bench.agent --ssh root@host [--ssh-config FILE] [--markdown FILE]
    python -m bench.agent --test-host      # a host of tools.hosts, made for this (root)

The goal is a small read within twice the network's round trip and 0.2 ms; give that round trip by `--rtt-us`, else
it is taken from TCP connections to a test host's sshd. An empty request (`ping`) to the same agent shows what SSH
and the frames cost.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.tables import show
from tare.sites.file import SshSpec
from tare.sites.process import TICKS_PER_S, from_ident, parse_stat
from tare.sites.ssh.dialing import SshDialer, agent_program, ssh_argv
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Link
from tools import hosts

READS, COMMANDS = 500, 10
_KNOCKS = 20
FILE = "/proc/sys/kernel/osrelease"


@dataclass(frozen=True)
class Costs:
    """Milliseconds a call, medians; `idle_cpu`: share of one CPU; `resident_mib`: memory that the agent holds."""

    connect_ms: float
    ping_ms: float
    read_ms: float
    read_p99_ms: float
    command_ms: float
    ssh_command_ms: float
    ssh_kept_command_ms: float
    idle_cpu: float
    idle_s: float
    resident_mib: float


def timed(act: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        seconds.append(1e3 * (time.perf_counter() - began))
    return seconds


def measured(spec: SshSpec, idle_s: float) -> Costs:
    """All of it, on one host."""
    dialer = SshDialer(spec, "bench", agent_program())
    Link("bench", dialer).close()  # the agent is copied
    began = time.perf_counter()
    link = Link("bench", dialer)
    connect_ms = 1e3 * (time.perf_counter() - began)
    try:
        host = SshHost(link)
        host.read(FILE)
        pings = timed(lambda: link.ask("ping"), READS)
        reads = timed(lambda: host.read(FILE), READS)
        commands = timed(lambda: host.run(["true"], timeout_s=30), COMMANDS)
        agent = from_ident(link.agent.ident)
        before = _stat(host, agent.pid)
        time.sleep(idle_s)
        used = _stat(host, agent.pid) - before
        resident = _resident_mib(host, agent.pid)
    finally:
        link.close()
    return Costs(
        connect_ms=connect_ms,
        ping_ms=statistics.median(pings),
        read_ms=statistics.median(reads),
        read_p99_ms=sorted(reads)[int(0.99 * len(reads))],
        command_ms=statistics.median(commands),
        ssh_command_ms=statistics.median(timed(lambda: _ssh(spec, ()), COMMANDS)),
        ssh_kept_command_ms=_kept(spec),
        idle_cpu=used / idle_s,
        idle_s=idle_s,
        resident_mib=resident,
    )


def _stat(host: SshHost, pid: int) -> float:
    return parse_stat(host.read(f"/proc/{pid}/stat") or b"").cpu_s


def _resident_mib(host: SshHost, pid: int) -> float:
    lines = (host.read(f"/proc/{pid}/status") or b"").decode().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def _ssh(spec: SshSpec, options: Sequence[str]) -> None:
    argv = [*ssh_argv(spec)[:1], *options, *ssh_argv(spec)[1:], "--", spec.ssh, "true"]
    subprocess.run(argv, check=True, timeout=60, stdin=subprocess.DEVNULL)


def _kept(spec: SshSpec) -> float:
    """Of commands over a connection that is kept (ControlMaster), as Ansible's pipelining has it."""
    socket = f"/tmp/tare-bench-{time.monotonic_ns()}"
    kept = ["-o", "ControlMaster=auto", "-o", f"ControlPath={socket}", "-o", "ControlPersist=60"]
    try:
        _ssh(spec, kept)
        return statistics.median(timed(lambda: _ssh(spec, kept), COMMANDS))
    finally:
        argv = ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", *ssh_argv(spec)[2:4], spec.ssh]
        subprocess.run(argv, check=False, timeout=60, capture_output=True)


def _round_trip_us(address: str) -> float:
    """The least that a TCP connection to its sshd took: one round trip."""
    rows = []
    for _ in range(_KNOCKS):
        began = time.perf_counter()
        with socket.create_connection((address, 22), timeout=10):
            rows.append(1e6 * (time.perf_counter() - began))
    return min(rows)


def table(costs: Costs, rtt_us: float | None) -> str:
    """For people, and for the journal."""
    goal = "" if rtt_us is None else f" (goal: {2e-3 * rtt_us + 0.2:.2f})"
    step = 100 / TICKS_PER_S / costs.idle_s
    rows = [
        ("connect", f"{costs.connect_ms:.0f} ms"),
        ("empty request", f"{costs.ping_ms:.3f} ms"),
        ("read of a small file", f"{costs.read_ms:.3f} ms{goal}, 99th percentile {costs.read_p99_ms:.3f} ms"),
        ("`true` through the agent", f"{costs.command_ms:.2f} ms"),
        ("`true` by a new SSH connection", f"{costs.ssh_command_ms:.0f} ms"),
        ("`true` by a kept SSH connection", f"{costs.ssh_kept_command_ms:.0f} ms"),
        ("agent's CPU while idle", f"{100 * costs.idle_cpu:.3f} % of one (steps of {step:.3f} %)"),
        ("agent's memory", f"{costs.resident_mib:.1f} MiB"),
    ]  # fmt: skip
    return "\n".join(["| what | median |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]) + "\n"


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--ssh", help="destination, as ssh(1) takes it")
    place.add_argument("--test-host", action="store_true", help="make a test host, and remove it")
    parser.add_argument("--ssh-config", help="in the place of ~/.ssh/config")
    parser.add_argument("--rtt-us", type=float, help="the network's round trip, where it is known")
    parser.add_argument("--idle-s", type=float, default=60.0, help="seconds in which nothing is asked (60)")
    parser.add_argument("--markdown", type=Path, help="keep the table here too")
    given = parser.parse_args(words)
    if given.test_host:
        with hosts.made(1) as (host,):
            spec = SshSpec(ssh=host.name, ssh_config=str(host.lab.ssh_config), name="bench")
            shown = table(measured(spec, given.idle_s), given.rtt_us or _round_trip_us(host.managed))
    else:
        spec = SshSpec(ssh=given.ssh, ssh_config=given.ssh_config, name="bench")
        shown = table(measured(spec, given.idle_s), given.rtt_us)
    show(shown, given.markdown)


if __name__ == "__main__":
    main()
