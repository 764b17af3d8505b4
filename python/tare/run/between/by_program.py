"""Measure the network from a host without an agent by a Python program: from the machine that tare runs on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tare.deployments.cgroup.removal import send
from tare.deployments.directories import remove_tree
from tare.errors import RunFailed, TimedOut
from tare.run.clock import Clock, Deadline
from tare.sites import Host, Output, Process
from tare.sites.abilities import NetworkProbe
from tare.sites.ledger import Kind, Ledger, noting
from tare.sites.process import alive, to_ident

SOUNDER = Path(__file__).with_name("sounder.py")
NOT_ITS_ADDRESS = "`address` in sites.yaml must be the host's own address on the measured network"
_NO_MODULE = "a host needs all of Python's standard library: apt-get install python3 (python3-minimal lacks parts)"
_SERVE_S, _CALL_S, _START_S, _POLL_S = 120.0, 60.0, 10.0, 0.01


@dataclass(frozen=True)
class SoundsByProgram:
    """Measures the network by programs on a host. `work`: directory on the host that they may write below."""

    host: Host
    ledger: Ledger
    work: str
    clock: Clock

    @contextmanager
    def echo(self, address: str) -> Iterator[int]:
        """Do what `NetworkProbe.echo` does. The program ends by itself if nothing ends it."""
        host, directory = self.host, f"{self.work}/wire-{os.getpid()}"
        output = Output(f"{directory}/sounder.stdout", f"{directory}/sounder.stderr")
        self.ledger.note(Kind.PATH, directory, host=host.name)
        try:
            host.run(["mkdir", "-p", "--", directory], timeout_s=_CALL_S)
            host.put(SOUNDER, f"{directory}/sounder.py")
            argv = ["python3", "-I", "-S", f"{directory}/sounder.py", "serve", address, f"{_SERVE_S:g}"]
            process = host.start(argv, output=output, announce=noting(self.ledger, host))
            try:
                yield self._port_of(address, process, output)
            finally:
                send(host, process, "KILL")
                self.ledger.forget(Kind.PROCESS, to_ident(process), host=host.name)
        finally:
            remove_tree(host, directory)
            self.ledger.forget(Kind.PATH, directory, host=host.name)

    def sound(self, address: str, port: int) -> Mapping[str, Any]:
        """Do what `NetworkProbe.sound` does."""
        return cast("Mapping[str, Any]", self._answer("ask", address, str(port)))

    def fill(self, address: str, port: int, seconds: float) -> Mapping[str, float]:
        """Do what `NetworkProbe.fill` does."""
        return cast("Mapping[str, float]", self._answer("fill", address, str(port), f"{seconds:g}"))

    def _answer(self, *words: str) -> object:
        return json.loads(_python(self.host, *words))

    def _port_of(self, address: str, process: Process, output: Output) -> int:
        host, deadline = self.host, Deadline(self.clock, _START_S)
        while not (printed := host.read(output.stdout) or b"").endswith(b"\n"):
            if not alive(host, process):
                words = (host.read(output.stderr) or b"").decode(errors="replace").strip().splitlines()
                why = words[-1] if words else "it printed nothing"
                raise RunFailed(
                    f"cannot listen at {address} on {host.name}: {why}",
                    hint=_NO_MODULE if "ModuleNotFoundError" in why else NOT_ITS_ADDRESS,
                )
            if deadline.passed:
                raise TimedOut(f"the sounder on {host.name} was not running within {_START_S:g} s")
            self.clock.sleep(_POLL_S)
        return int(printed)


@dataclass(frozen=True)
class Clocks:
    """Clocks of a host, read between two moments of its monotonic clock. `ahead_ns`: wall minus monotonic clock."""

    received_ns: int
    replied_ns: int
    ahead_ns: int


def clocks_of(host: Host) -> Clocks:
    """Read a host's clocks, from the host's agent or else by a program."""
    if (read := host.clocks()) is not None:
        return Clocks(read.monotonic_ns, read.monotonic_ns, read.wall_ns - read.monotonic_ns)
    return Clocks(**json.loads(_python(host, "now")))


def sounder_of(host: Host, ledger: Ledger, work: str, clock: Clock) -> NetworkProbe:
    """Return what measures the network from a host: its agent if it can, else a program."""
    return host.network_probe() or SoundsByProgram(host, ledger, work, clock)


def _python(host: Host, *words: str) -> bytes:
    return host.run(["python3", "-I", "-S", "-", *words], timeout_s=_CALL_S, stdin=SOUNDER.read_bytes()).stdout
