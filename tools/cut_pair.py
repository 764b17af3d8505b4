"""Cut, silence and kill at random moments of real runs between two test hosts; check that nothing is lost or left.

    python -m tools.cut_pair --cuts 50 --kills 50 --stores DIR [--seed 1]      # root

A study of Redis under tare-load, both bare, runs between two hosts of `tools.hosts`. A cut ends a host's SSH
connections or makes its network silent for some seconds, so that both sides wait (TCP half open); a kill ends the
agent of a host, or tare itself, which is then started again on the same store. A store that is full is put aside
and a new one begun. Exit code 0 if every run is there once and good, every failed attempt has its reason, every
store is whole, and no process, control group, directory or ledger entry is left on either host. The seed plays the
same faults again.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tare.errors import StoreError
from tare.run.record import RunRecord
from tare.sites.ssh.link import LEASE_S
from tare.store import open_store
from tools import hosts
from tools.kill_nine import Trial
from tools.lab import GROUPS, TestHost

STUDY = """\
format: 1
name: cut-pair
question: Does what is measured between two hosts survive its connections?
sut: {image: redis-7, database: redis, deployment: bare, settings: {save: "", appendonly: false}}
client: {image: tare-load, deployment: bare, own_host: true}
workload:
  name: tare-load
  connections: 2
  job:
    generators: {key: {uniform: {from: 0, to: 99}}, value: {text: {length: 10}}}
    operations: [{name: set, steps: [{send: "SET key:{key} {value}"}]}]
    load: {records: 100, steps: [{send: "SET key:{record} {value}"}]}
  warmup_s: 1
  measure_s: 2
  window_s: 1
protocol: {name: fixed, blocks: 4, retries: 500, seed: 1, control: false}
factors:
  connections: {sets: workload.connections, levels: [2, 4]}
baseline: connections-2
"""
_LONGEST_PAUSE_S, _LONGEST_SILENCE_S = 12.0, 6.0
_END_S, _LEFT_S, _AFTER_S = 900.0, 30.0, 15.0
_CUTS, _KILLS = ("connections", "silence"), ("agent", "tare")
_ENDED_BY_TARE = {0, 1, 2, 3}
"""Exit codes that a fault may lead to: fine, a run failed, a site that could not be reached."""
_OWN = frozenset({"test_host.sh", "sleep", "sshd", "unshare"})
"""What a test host itself is made of."""


@dataclass(frozen=True)
class Fault:
    """One that was played. `at`, `until`: seconds since the epoch."""

    kind: str
    host: str
    at: float
    until: float


@dataclass
class Faults:
    """What is still to be played, on which hosts, by which chance.

    `missed`: how often there was nothing to strike.
    """

    pair: Sequence[TestHost]
    chance: Random
    to_come: list[str]
    played: list[Fault] = field(default_factory=list)
    missed: int = 0

    def play(self, tare: subprocess.Popen[bytes]) -> bool:
        """The next one, on a host by chance; it stays to come where it strikes nothing, as before a connection."""
        kind, host = self.to_come[-1], self.chance.choice(list(self.pair))
        at = time.time()
        if not self._strikes(kind, host, tare):
            self.missed += 1
            return False
        self.to_come.pop()
        self.played.append(Fault(kind, host.name, at, time.time()))
        print(f"{kind} of {host.name}", flush=True)
        return True

    def _strikes(self, kind: str, host: TestHost, tare: subprocess.Popen[bytes]) -> bool:
        if kind == "connections":
            return _kill(connections(host))
        if kind == "agent":
            return _kill(agents(host))
        if kind == "tare":
            tare.kill()
            return True
        if not connections(host):
            return False
        _managed(host, up=False)
        time.sleep(self.chance.uniform(1.0, _LONGEST_SILENCE_S))
        _managed(host, up=True)
        return True


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


def faulted(trial: Trial, faults: Faults) -> list[int | None]:
    """Run until all faults have come; the exit code of each `tare run`, `None` of one that was killed."""
    codes: list[int | None] = []
    while faults.to_come:
        code = _session(trial, faults)
        codes.append(code)
        trial.look()
        if code not in {None, *_ENDED_BY_TARE}:
            trial.problems.append(f"tare run ended with {code}")
        if code == 0:
            trial.next_store()
        if trial.problems:
            break
    return codes


def _session(trial: Trial, faults: Faults) -> int | None:
    """One `tare run` with faults until it ends or is killed."""
    log = trial.stores / "stderr"
    with (
        log.open("ab") as stderr,
        subprocess.Popen(
            [*trial.command, "--store", str(trial.store)], stdout=subprocess.DEVNULL, stderr=stderr
        ) as running,
    ):
        try:
            while faults.to_come:
                with suppress(subprocess.TimeoutExpired):
                    return running.wait(faults.chance.uniform(0.0, _LONGEST_PAUSE_S))
                if faults.play(running) and faults.played[-1].kind == "tare":
                    return None
            return running.wait(_END_S)
        finally:
            running.kill()


def phases_hit(faults: Sequence[Fault], records: Sequence[RunRecord]) -> Counter[str]:
    """Into which phase of an attempt each fault came; an attempt that a kill of tare took has no record."""
    counts = Counter[str]()
    for fault in faults:
        inside = (
            str(time.phase)
            for record in records
            for time in record.phases
            if time.began_at <= fault.at < time.began_at + time.seconds
        )
        counts[next(inside, "between attempts, or in one that a kill of tare took")] += 1
    return counts


def unnamed(records: Sequence[RunRecord]) -> list[str]:
    """Failed attempts without one sentence about why."""
    return [
        f"{record.run_id}, attempt {record.attempt}, failed: {record.outcome.reason!r}"
        for record in records
        if not record.outcome.ok
        and (not record.outcome.reason or "\n" in record.outcome.reason or "Traceback" in record.outcome.reason)
    ]


def unexplained(records: Sequence[RunRecord], faults: Sequence[Fault]) -> list[str]:
    """Failed attempts into which no killed agent came: a cut, or a silence of seconds, is to fail nothing."""
    kills = [fault for fault in faults if fault.kind == "agent"]
    return [
        f"{record.run_id}, attempt {record.attempt}, failed, and no agent was killed in it: {record.outcome.reason}"
        for record in records
        if not record.outcome.ok
        and record.phases
        and not any(
            kill.at <= record.phases[-1].began_at + record.phases[-1].seconds
            and kill.until + _AFTER_S >= record.phases[0].began_at
            for kill in kills
        )
    ]


def _all_records(trial: Trial) -> list[RunRecord]:
    found: list[RunRecord] = []
    for path in sorted(trial.stores.glob("store-*")):
        with suppress(StoreError):
            found += open_store(path).records()
    return found


def _undisturbed(command: Sequence[str], store: Path) -> bool:
    argv = [*command, "--store", str(store)]
    return subprocess.run(argv, stdout=subprocess.DEVNULL, check=False, timeout=_END_S).returncode == 0


def _managed(host: TestHost, *, up: bool) -> None:
    host.lab.in_switch("ip", "link", "set", f"m{host.number}", "up" if up else "down")


def _kill(pids: Sequence[int]) -> bool:
    """Whether there was anybody."""
    struck = False
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            struck = True
    return struck


def _comm(pid: int) -> str:
    return _text(f"/proc/{pid}/comm").strip()


def _line(pid: int) -> str:
    return _text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def _parent(pid: int) -> int | None:
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def patience_s(faults: Sequence[Fault], now: float) -> float:
    """How long something may still be there: some seconds, or what is left of the lease of a killed tare's agents.

    A study that was finished when its tare was killed is shown without a connection, so that nobody ends them.
    """
    killed_at = max((fault.at for fault in faults if fault.kind == "tare"), default=now - LEASE_S)
    return _LEFT_S + max(0.0, killed_at + LEASE_S - now)


def _await_nothing(pair: Sequence[TestHost], look: Callable[[TestHost], list[str]], patience: float) -> list[str]:
    """What is left once agents that were parted from have had their time."""
    deadline = time.monotonic() + patience
    while (left := [what for host in pair for what in look(host)]) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def tried(pair: Sequence[TestHost], given: argparse.Namespace) -> list[str]:
    """Play all, print the counts; the problems."""
    chance = Random(given.seed)
    to_come = [_CUTS[n % 2] for n in range(given.cuts)] + [_KILLS[n % 2] for n in range(given.kills)]
    chance.shuffle(to_come)
    study = given.stores / "study.yaml"
    study.write_text(STUDY)
    sites = str(pair[0].lab.sites)
    command = [sys.executable, "-m", "tare", "run", str(study), "--sites", sites, "--quiet"]
    trial, faults = Trial(command, given.stores, chance, 0.0), Faults(pair, chance, to_come)
    if not _undisturbed(command, given.stores / "before"):  # images are on both hosts then
        return ["a run without any fault failed"]
    codes = faulted(trial, faults)
    if not trial.problems and codes[-1:] != [0]:
        if not _undisturbed(command, trial.store):
            trial.problems.append("the last tare run, without any fault, failed")
        trial.look()
        trial.check_store()
    records = _all_records(trial)
    failed = Counter(str(record.outcome.reason) for record in records if not record.outcome.ok)
    problems = [
        *trial.problems,
        *unnamed(records),
        *unexplained(records, faults.played),
        *_await_nothing(pair, left_on, patience_s(faults.played, time.time())),
    ]
    log = (given.stores / "stderr").read_text(errors="replace")
    problems += ["a traceback stands in the log"] if "Traceback" in log else []
    counts = dict(Counter(fault.kind for fault in faults.played))
    print(f"seed {given.seed}: {counts}, and {faults.missed} times there was nothing to strike")
    print(f"in: {dict(phases_hit(faults.played, records))}")
    ended = dict(Counter(codes))
    print(f"{trial.number} stores, {len(records)} attempts, {failed.total()} of them failed, exit codes {ended}")
    print("".join(f"  {count} x {reason}\n" for reason, count in failed.most_common()), end="")
    return problems


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 1 where anything was lost, doubled, unexplained or left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", type=Path, required=True, help="a directory for the stores; must not exist")
    given = parser.parse_args(words)
    given.stores.mkdir(parents=True)
    began = time.monotonic()
    with hosts.made(2) as pair:
        problems = tried(pair, given)
    print("".join(f"PROBLEM: {problem}\n" for problem in problems), end="")
    print(f"{len(problems)} problems, {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
