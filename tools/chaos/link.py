"""Connections cut and agents killed while programs run through an agent on this machine: `--study link`.

The agent is spoken to as over SSH. Each program writes one line. Over cuts every program has to have run once. An
agent that is killed may cost the program that is under way, which then has to fail with that reason, and never runs
twice.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tare.errors import RunFailed
from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tare.sites.ssh.dialing import CommandDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Link
from tools.chaos.tally import Tally

_LONGEST_PAUSE_S = 0.15
_LIMIT_S, _END_S = 60.0, 5.0
_LOST = "ended during a request and was restarted"


@dataclass(frozen=True)
class Outcome:
    """`lines`: how often each program wrote its line; `failures`: program → reason; `living`: agents left."""

    asked: int
    lines: Counter[int]
    failures: dict[int, str]
    living: int

    def faults(self, *, may_fail: bool) -> list[str]:
        """What must not have happened, a sentence each."""
        doubled = [n for n, times in self.lines.items() if times > 1]
        lost = [n for n in range(self.asked) if n not in self.lines and n not in self.failures]
        unnamed = {n: why for n, why in self.failures.items() if not may_fail or _LOST not in why}
        faults = [f"program {n} ran {self.lines[n]} times" for n in doubled]
        faults += [f"program {n} is said to have run, and did not" for n in lost]
        faults += [f"program {n} failed: {why}" for n, why in unnamed.items()]
        return [*faults, *([f"{self.living} agents are left"] if self.living else [])]


def faulted(home: Path, faults: int, fault: Callable[[Link], None], chance: Random) -> Outcome:
    """Run programs until that many faults have come."""
    words = ("connect", "--session", "chaos-link", "--home", str(home))
    link = Link("far", CommandDialer((str(agent_program()), *words)))
    host, file, over = SshHost(link), home / "lines", threading.Event()
    agents, failures = {link.agent.ident}, dict[int, str]()

    def come() -> None:
        for _ in range(faults):
            over.wait(chance.uniform(0, _LONGEST_PAUSE_S))
            fault(link)
        over.set()

    thread = threading.Thread(target=come)
    thread.start()
    asked = 0
    while not over.is_set():
        try:
            host.run(["sh", "-c", f"echo {asked} >>{file}"], timeout_s=_LIMIT_S)
        except RunFailed as error:
            failures[asked] = error.what
        agents.add(link.agent.ident)
        asked += 1
    thread.join()
    link.close()
    here = LocalHost()
    lines = Counter(int(line) for line in file.read_text().split())
    deadline = time.monotonic() + _END_S
    while (living := sum(alive(here, from_ident(agent)) for agent in agents)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return Outcome(asked, lines, failures, living)


def cut(link: Link) -> None:
    """As a network that fails."""
    link.break_off()


def kill(link: Link) -> None:
    """As whoever runs out of memory."""
    with suppress(ProcessLookupError):
        os.kill(from_ident(link.agent.ident).pid, signal.SIGKILL)


def play_link(faults: int, chance: Random, tally: Tally) -> None:
    """Half of the faults are cuts, half are kills."""
    kinds = (("connection cut", faults - faults // 2, cut, False), ("kill -9 an agent", faults // 2, kill, True))
    for kind, count, fault, may_fail in kinds:
        with tempfile.TemporaryDirectory() as home:
            outcome = faulted(Path(home), count, fault, chance)
        tally.cells[kind, "between runs"] += count
        tally.attempts += outcome.asked
        tally.failed.update(outcome.failures.values())
        tally.violations += outcome.faults(may_fail=may_fail)
