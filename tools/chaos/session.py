"""One `tare run` under way, what faults do to it, and when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.store import open_store
from tools.chaos.disks import Disk
from tools.chaos.processes import below, ended, part_of, text, with_word

SESSION_S = 300.0
"""Longest of a session that is left to end, and of a second tare on a study whose runs take seconds."""


@dataclass(frozen=True)
class Group:
    """Control groups of tare's own process: of memory and of processes, where the kernel has them."""

    memory: Path | None = None
    pids: Path | None = None


class Ground(Protocol):
    """What a session is played on: this machine with fakes, or a test host with an engine of its own."""

    place: Path
    brisk: bool
    """Whether runs take half a second, as those of fakes do."""
    env: Mapping[str, str]
    group: Group
    disks: dict[str, Disk]
    """By what lies on them: `store` with its raw files, `home` with images, snapshots and data."""
    spared: str
    """The container that is a canary; empty where there is none."""

    def start(self, command: Sequence[str], output: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Begin a `tare`."""
        ...

    def pid(self, tare: subprocess.Popen[bytes]) -> int:
        """Its own process, by its number here."""
        ...

    def inside(self, argv: Sequence[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program where tare runs."""
        ...

    def processes(self) -> list[int]:
        """All that may be a part of a run or of its engine, beside what is below tare."""
        ...

    def start_engine(self, options: Sequence[str] = ()) -> None:
        """Return when it answers. Raises `BrokenOff`."""
        ...


def inner_pid(pid: int) -> int:
    """As a process knows itself, in the innermost of its namespaces (pid_namespaces(7), NSpid)."""
    idents = [line.split()[-1] for line in text(f"/proc/{pid}/status").splitlines() if line.startswith("NSpid:")]
    return int(idents[0]) if idents else pid


@dataclass(frozen=True)
class Played:
    """A fault that struck. `at`, `until`: seconds since the epoch; `phase`: that it began in."""

    kind: str
    phase: str
    at: float
    until: float


@dataclass
class Session:
    """One `tare run`. `store`: its directory."""

    tare: subprocess.Popen[bytes]
    command: Sequence[str]
    ground: Ground
    chance: Random
    store: Path = Path()
    pid: int = 0
    beside_s: float = SESSION_S
    """How long a second tare may take."""
    played: list[Played] = field(default_factory=list)
    committed: dict[tuple[str, int], RunRecord] = field(default_factory=dict)
    """The digest of each attempt's record that the store had when power was cut."""

    def __post_init__(self) -> None:
        self.pid = self.pid or self.ground.pid(self.tare)

    @property
    def place(self) -> Path:
        """Where all lies that it makes."""
        return self.ground.place

    @property
    def env(self) -> Mapping[str, str]:
        """Of tare."""
        return self.ground.env

    def others(self) -> list[int]:
        """Processes below tare's own, and of its directories: servers, clients, monitors, helpers."""
        ours = {self.pid, self.tare.pid, os.getpid()}
        idents = {*below(self.pid), *with_word(f"{self.place}/".encode())}
        return sorted(idents - ours)

    def part(self, name: str) -> list[int]:
        """The processes that are one of `PARTS`."""
        pids = {*self.ground.processes(), *self.others()}
        return [pid for pid in pids if part_of(pid) == name and not self._is_spared(pid)]

    def _is_spared(self, pid: int) -> bool:
        """Whether it is the shim of a canary, which is always there: to strike it says nothing of a run."""
        return bool(self.ground.spared) and self.ground.spared in text(f"/proc/{pid}/cmdline")

    def phase(self) -> str:
        """What tare is at, by the file that it keeps for the live page."""
        try:
            now = json.loads((self.store / "now.json").read_bytes())
        except (OSError, ValueError):
            return "starting"
        if now["pid"] != inner_pid(self.pid):  # an earlier session's
            return "starting"
        if now.get("over"):
            return "ending"
        if now.get("preparing"):
            return "preparing"
        return next((str(each["phase"]) for each in now["runs"] if each.get("phase")), "between runs")

    def note_committed(self) -> None:
        """What the store has now must be there for ever."""
        with suppress(StoreError):
            records = open_store(self.store).records()
            self.committed = {(record.run_id, record.attempt): record for record in records}

    def signal(self, pids: Sequence[int], number: signal.Signals) -> bool:
        """Whether there was anybody who had not ended."""
        struck = False
        for pid in (each for each in pids if not ended(each)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                struck = True
        return struck

    def halt(self, pids: Sequence[int], seconds: float) -> bool:
        """Stopped for so long. nsenter(1) stops when its child does, and so does not end before it is continued."""
        struck = self.signal(pids, signal.SIGSTOP)
        if struck:
            time.sleep(seconds)
        self.signal([*pids, self.tare.pid], signal.SIGCONT)
        return struck

    def play(self, kind: str, fault: Callable[[Session], bool]) -> bool:
        """Whether it struck anything; then it is noted."""
        phase, at = self.phase(), time.time()
        struck = fault(self)
        if struck:
            self.played.append(Played(kind, phase, at, time.time()))
        return struck
