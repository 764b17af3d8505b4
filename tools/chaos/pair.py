"""Connections ended, networks silent, agents and tare killed in real runs between two test hosts: `--study pair`.

A connection that is ended, or silent for some seconds so that both sides wait (TCP half open), fails nothing; a
killed agent costs the attempt that it serves.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.sites.layout import default_layout
from tare.sites.ssh.link import LEASE_S
from tools import hosts
from tools.chaos.faults import Fault, kill_tare, named
from tools.chaos.ground import TARE, Here
from tools.chaos.processes import text
from tools.chaos.session import Played, Session
from tools.chaos.studies import PAIR
from tools.chaos.tally import BrokenOff
from tools.chaos.trial import Call, Chaos
from tools.lab import GROUPS, TestHost

_LONGEST_S, _LONGEST_SILENCE_S = 12.0, 6.0
_END_S, _LEFT_S = 900.0, 30.0
_OWN = frozenset({"test_host.sh", "sleep", "sshd", "unshare"})
"""What a test host itself is made of."""


def connections(host: TestHost) -> list[int]:
    """The sshd processes that serve one each: those whose parent is an sshd."""
    daemons = {pid for pid in hosts.members([host.name]) if _comm(pid) == "sshd"}
    return [pid for pid in daemons if _parent(pid) in daemons]


def agents(host: TestHost) -> list[int]:
    """The daemons of all sessions, whose name is `exe`; what carries their frames ends with them."""
    return [pid for pid in hosts.members([host.name]) if is_daemon(_line(pid))]


def is_daemon(line: str) -> bool:
    """Whether a command line is that of an agent's daemon, which its own program starts (crates/agent, `reach`)."""
    return line.startswith("/proc/self/exe serve ")


def faults_of(pair: Sequence[TestHost]) -> Mapping[str, Fault]:
    """What strikes a host by chance, or tare itself."""

    def end_connections(session: Session) -> bool:
        return session.signal(connections(session.chance.choice(pair)), signal.SIGKILL)

    def kill_agents(session: Session) -> bool:
        return session.signal(agents(session.chance.choice(pair)), signal.SIGKILL)

    def silence(session: Session) -> bool:
        host = session.chance.choice(pair)
        if not connections(host):
            return False
        _set_link(host, "down")
        time.sleep(session.chance.uniform(1.0, _LONGEST_SILENCE_S))
        _set_link(host, "up")
        return True

    return {
        "connections ended": end_connections,
        "network silent": silence,
        "kill -9 an agent": kill_agents,
        "kill -9 tare": kill_tare,
    }


def _set_link(host: TestHost, state: str) -> None:
    host.lab.in_switch("ip", "link", "set", f"m{host.number}", state)


def left_on(host: TestHost) -> list[str]:
    """What of tare's is there that should be gone, a line each."""
    home = host.root / "var-lib" / "tare"
    left = [f"process {_line(pid)}" for pid in hosts.members([host.name]) if _comm(pid) not in _OWN]
    left += [f"directory {path}" for path in (home / "work").glob("*")]
    left += [f"in the ledger: {entry}" for entry in noted(home / "agent" / "ledger")]
    for top in ("", "*/"):  # others' groups come and go beside these
        groups = GROUPS.glob(f"{top}tare-hosts/{host.name}/tare/*")
        left += [f"control group {path}" for path in groups if path.is_dir()]
    return [f"{what} on {host.name}" for what in left]


def noted(ledger: Path) -> Iterator[str]:
    """A line of JSON each; what is kept is loaded data and images."""
    if not ledger.exists():
        return
    standing: dict[tuple[str, str], bool] = {}
    for line in filter(None, ledger.read_text().splitlines()):
        entry = json.loads(line)
        if "forgotten" in entry:
            standing.pop((entry["kind"], entry["forgotten"]), None)
        else:
            standing[entry["kind"], entry["ident"]] = bool(entry["keep"])
    yield from (f"{kind} {ident}" for (kind, ident), keep in standing.items() if not keep)


@dataclass
class PairChaos(Chaos):
    """Faults of a pair; what a killed tare left may stay until the lease of its agents is over."""

    pair: Sequence[TestHost] = ()
    killed_at: float = field(default_factory=lambda: time.time() - LEASE_S)
    """When tare was killed last, seconds since the epoch."""

    def _restore(self, played: list[Played]) -> None:
        super()._restore(played)
        self.killed_at = max([self.killed_at, *(each.until for each in played if each.kind == "kill -9 tare")])

    def patience_s(self, now: float) -> float:
        """How long something may still be there.

        A study that was finished when its tare was killed is shown without a connection, so that nobody ends its
        agents before their lease is over.
        """
        return _LEFT_S + max(0.0, self.killed_at + LEASE_S - now)

    def left(self) -> list[str]:
        """On either host, once agents that were parted from have had their time."""
        deadline = time.monotonic() + self.patience_s(time.time())
        while (left := [what for host in self.pair for what in left_on(host)]) and time.monotonic() < deadline:
            time.sleep(0.5)
        return [*left, *(f"staged: {path}" for path in (self.store / "staging").glob("*"))]


def pair_trial(pair: Sequence[TestHost], call: Call) -> PairChaos:
    """Redis under tare-load, both bare, with images on both hosts. Raises `BrokenOff`."""
    place = call.place
    (place / "disk").mkdir()
    study = place / "study.yaml"
    study.write_text(PAIR)
    command = [*TARE, "run", str(study), "--sites", str(pair[0].lab.sites), "--quiet"]
    before = subprocess.run(
        [*command, "--store", str(place / "before")], capture_output=True, text=True, check=False, timeout=_END_S
    )
    if before.returncode != 0:
        raise BrokenOff(f"a study without any fault failed: {before.stderr[-400:]}")
    return PairChaos(
        command,
        place / "disk" / "stores",
        call.chance,
        call.longest_s or _LONGEST_S,
        layout=default_layout(),
        ground=Here(place, env=dict(os.environ)),
        env=dict(os.environ),
        faults=named(faults_of(pair), call.kinds),
        there=lambda _: all(connections(host) for host in pair),
        end_s=_END_S,
        fakes=False,
        tally=call.tally,
        pair=pair,
    )


def _comm(pid: int) -> str:
    return text(f"/proc/{pid}/comm").strip()


def _line(pid: int) -> str:
    return text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def _parent(pid: int) -> int | None:
    fields = text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else None
