"""Cut connections and kill agents at random moments; check that nothing is lost, doubled or left behind.

    python -m tools.cut_links [--cuts 50] [--kills 50] [--seed 1]

An agent on this machine is spoken to as over SSH. While programs run through it, each of which writes one line, a
fault comes after a random pause. Over cuts, every program has to have run once. An agent that is killed may cost
the program that is under way, which then has to fail with that reason, and never runs twice.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tare.errors import RunFailed
from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tare.sites.ssh.dialing import CommandDialer, agent_program
from tare.sites.ssh.host import SshHost
from tare.sites.ssh.link import Link

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


def faulted(home: Path, faults: int, fault: Callable[[Link], None], chance: random.Random) -> Outcome:
    """Run programs until that many faults have come."""
    words = ("connect", "--session", "cut-links", "--home", str(home))
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


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 1 where anything was lost, doubled or left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(words)
    chance, wrong = random.Random(given.seed), 0
    for name, faults, fault, may_fail in (("cuts", given.cuts, cut, False), ("kills", given.kills, kill, True)):
        with tempfile.TemporaryDirectory() as home:
            outcome = faulted(Path(home), faults, fault, chance)
        problems = outcome.faults(may_fail=may_fail)
        wrong += len(problems)
        ran = f"{outcome.asked} programs, {len(outcome.failures)} failed with that reason"
        print(f"{faults} {name}: {ran}, {len(problems)} problems")
        print("".join(f"  {problem}\n" for problem in problems), end="", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
