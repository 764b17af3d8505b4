"""Sessions with faults on one store after the other, and what must hold after each and at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tare.errors import StoreError
from tare.sites.sqlite_ledger import SqliteLedger
from tools.chaos import clock
from tools.chaos.canaries import Canaries, differences, footprint
from tools.chaos.faults import ENDED_BY_TARE, FAULTS, POWER_CUT, Fault, kill_tare
from tools.chaos.ground import Here, OnTestHost
from tools.chaos.processes import text
from tools.chaos.reasons import survived, unforeseen, wrong
from tools.chaos.session import SESSION_S, Played, Session
from tools.chaos.stores import Stores, left_behind
from tools.chaos.tally import BrokenOff, Tally

_TERMINATED = {-signal.SIGTERM, 128 + signal.SIGTERM}
_KILLED = {-signal.SIGKILL, 128 + signal.SIGKILL}
_KILLS = {"kill -9 tare", "out of memory: tare", POWER_CUT}
_LATER, _AWAITED_S, _LOOK_S = 0.8, 300.0, 0.2
"""Share of the sessions whose faults wait for a part, how long, and how often it is looked for."""
_MOST_TRIES = 5
_SETTLED_S = 10.0


@dataclass(frozen=True)
class Call:
    """What a call asks for. `longest_s`: `None` for the study's own; `kinds`: words in the names of faults."""

    place: Path
    chance: Random
    tally: Tally
    longest_s: float | None = None
    kinds: Sequence[str] = ()


@dataclass
class Chaos(Stores):
    """Faults instead of kills. `fakes`: no part has a name, and what a kind does to a run is not known."""

    ground: Here | OnTestHost = field(default_factory=lambda: Here(Path()))
    env: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, Fault] = field(default_factory=lambda: FAULTS)
    end_s: float = 1800.0
    beside_s: float = SESSION_S
    there: Callable[[Session], bool] | None = None
    """What most sessions wait for before a fault: a busy machine takes longer for it than faults are apart."""
    fakes: bool = True
    tally: Tally = field(default_factory=Tally)
    drawn: Counter[str] = field(default_factory=Counter)
    """How often each kind struck in this call."""
    before: Mapping[str, Counter[str]] = field(default_factory=dict)
    """The test host's footprint."""

    @property
    def place(self) -> Path:
        """Where stores and home are."""
        return self.ground.place

    def session(self, faults: int) -> bool:
        """One `tare run` with up to so many faults; `False` where it came to its end."""
        command = [*self.command, "--store", str(self.store)]
        known = set(self.committed)
        with tempfile.TemporaryFile() as output:
            with self.ground.start(command, output.fileno(), self.env) as tare:
                under_way = Session(tare, command, self.ground, self.rng, self.store, beside_s=self.beside_s)
                try:
                    code = self._faults(under_way, faults)
                except (BrokenOff, KeyboardInterrupt):
                    under_way.signal([under_way.pid, tare.pid], signal.SIGKILL)
                    raise
                finally:
                    self.tally.cells.update((each.kind, each.phase) for each in under_way.played)
            output.seek(0)
            words = output.read().decode(errors="replace")
        self.tally.sessions["killed" if code is None or code < 0 else str(code)] += 1
        if "Traceback (most recent call last)" in words and not _in_wrapper(words):
            self.problems.append(f"a traceback: {words[-1500:]}")
        if (why := unlike_an_end(code, self._kinds(under_way.played))) is not None:
            self.problems.append(f"tare run {why}: {words[-400:]}")
        self._restore(under_way.played)
        self.committed |= under_way.committed
        self.look()
        self._judge(known, under_way.played)
        if self.problems:
            self.problems.append(f"after {[(each.kind, each.phase) for each in under_way.played]}: {words[-600:]}")
        return code != 0

    def _kinds(self, played: Sequence[Played]) -> set[str]:
        """With one name for a kill of tare, whatever a driver calls it."""
        return {"kill -9 tare" if self.faults.get(each.kind) is kill_tare else each.kind for each in played}

    def _faults(self, session: Session, most: int) -> int | None:
        if self.there is not None and self.rng.random() < _LATER:
            end = time.monotonic() + _AWAITED_S
            while not self.there(session) and session.tare.poll() is None and time.monotonic() < end:
                time.sleep(_LOOK_S)
        for _ in range(most):
            with suppress(subprocess.TimeoutExpired):
                return session.tare.wait(self.rng.uniform(0.0, self.longest_s))
            self._play_one(session)
        try:
            return session.tare.wait(SESSION_S if self.rng.random() < 0.3 else self.rng.uniform(0, self.longest_s))
        except subprocess.TimeoutExpired:
            session.play("kill -9 tare", FAULTS["kill -9 tare"])
            session.tare.wait(_SETTLED_S)
            return None

    def _play_one(self, session: Session) -> None:
        """Of the kinds that find what they strike one that came least often, so that chance leaves none out."""
        rarest_first = sorted(sorted(self.faults), key=lambda name: (self.drawn[name], self.rng.random()))
        for name in rarest_first:
            try:
                if session.play(name, self.faults[name]):
                    self.drawn[name] += 1
                    return
                self.tally.missed[name] += 1
            except AssertionError as error:
                self.problems.append(f"{name}: {error}")
                return
            if session.tare.poll() is not None:
                return

    def _restore(self, played: list[Played]) -> None:
        """What an administrator does after a fault: the engine runs, as it did before, and disks are repaired."""
        if (file := self.env.get(clock.FILE)) is not None:
            clock.step(Path(file), 0)
        self.ground.start_engine()
        kinds = {each.kind for each in played}
        if POWER_CUT in kinds:
            for disk in self.ground.disks.values():
                disk.start_again()
        if "EIO below the store" in kinds:
            self.ground.disks["store"].repair()

    def _judge(self, known: set[tuple[str, int]], played: list[Played]) -> None:
        """Each attempt that this session committed as failed must tell why, and name that first."""
        try:
            records = self.opened().records()
        except StoreError:
            return
        self.tally.attempts += sum((record.run_id, record.attempt) not in known for record in records)
        for record in records:
            if (record.run_id, record.attempt) in known:
                continue
            if record.outcome.ok:
                if (kind := survived(record, played)) is not None:
                    self.problems.append(f"{record.run_id}, attempt {record.attempt}, is good in spite of {kind}")
                continue
            self.tally.failed[str(record.outcome.reason)[:160]] += 1
            began = record.phases[0].began_at if record.phases else 0.0
            ended = record.phases[-1].began_at + record.phases[-1].seconds if record.phases else time.time()
            reason = record.outcome.reason
            why = unforeseen(reason) if self.fakes else wrong(reason, began, ended, played)
            if why is not None:
                self.problems.append(f"{record.run_id}, attempt {record.attempt}: {why}: {record.outcome.reason}")

    def finish(self) -> None:
        """Run the study to its end undisturbed, and look at everything."""
        command = [*self.command, "--store", str(self.store)]
        code, words = None, b""
        for _ in range(_MOST_TRIES):  # a run that failed for good in a session is made good by a later one
            with self.ground.start(command, subprocess.PIPE, self.env) as tare:
                try:
                    _, words = tare.communicate(timeout=self.end_s)
                except subprocess.TimeoutExpired:
                    os.kill(self.ground.pid(tare), signal.SIGKILL)
                    self.problems.append(f"the last tare run did not end within {self.end_s:g} s, undisturbed")
                    return
            if (code := tare.returncode) == 0:
                break
        if code != 0:
            self.problems.append(f"the last tare run ended with {code}: {words.decode(errors='replace')[-400:]}")
        if self.problems:
            return
        known = set(self.committed)
        self.look()
        self._judge(known, [])
        self.check_store()
        self.problems += self.left()

    def left(self) -> list[str]:
        """What is still there that should be gone."""
        staged = [f"staged: {path}" for path in (self.store / "staging").glob("*")]
        if isinstance(self.ground, Here):
            return [*staged, *left_behind(self.opened(), self.layout), *processes_left(self.ground)]
        ledger = SqliteLedger(self.layout.ledger)
        noted = [f"in the ledger: {entry.kind} {entry.ident}" for entry in ledger.entries() if not entry.keep]
        end = time.monotonic() + _SETTLED_S
        while (found := differences(self.before, footprint(self.ground))) and time.monotonic() < end:
            time.sleep(0.5)
        return [*staged, *noted, *found]


def unlike_an_end(code: int | None, kinds: Set[str]) -> str | None:
    """What is wrong with how tare ended; `None` where it, or a fault of these kinds, ends it so.

    A crash shows as a signal, too: SIGSEGV, or SIGABRT of a library that gives up.
    """
    if code is None or code in ENDED_BY_TARE:
        return None
    if code in _TERMINATED:
        return None if "SIGTERM of tare" in kinds else "was ended by SIGTERM, and by no fault"
    if code in _KILLED:
        return None if _KILLS & kinds else "was killed, and by no fault"
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def processes_left(ground: Here) -> list[str]:
    """What fakes are made of names nothing of tare's: `sleep 3601.6`, told by its group and its environment."""
    end = time.monotonic() + _SETTLED_S
    while (pids := ground.processes()) and time.monotonic() < end:
        time.sleep(0.2)
    lines = ((pid, text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()) for pid in pids)
    return [f"process {pid}: {line}" for pid, line in lines if line]


def _in_wrapper(words: str) -> bool:
    """Whether the fakes' wrapper was hit while it was still loading modules, which the command itself guards."""
    return "tare_with_fakes.py" in words and "cli.main()" not in words


def play(trial: Chaos, canaries: Canaries, faults: int, until: float = float("inf")) -> None:
    """Session by session, until so many faults were played, it is late, or one shows something; then to the end."""
    trial.stores.mkdir()
    try:
        _play(trial, canaries, faults, until)
    finally:  # what was counted and seen stays counted and seen, whatever keeps it from going on
        trial.tally.violations += trial.problems
        trial.tally.stores += trial.number


def _play(trial: Chaos, canaries: Canaries, faults: int, until: float) -> None:
    while trial.tally.faults < faults and not trial.problems and time.time() < until:
        under_way = trial.session(min(3, faults - trial.tally.faults))
        trial.problems += canaries.problems()
        if not under_way and not trial.problems:
            if not isinstance(trial.ground, Here):
                trial.problems += trial.left()
            trial.next_store()
    if not trial.problems:
        trial.finish()
        trial.problems += canaries.problems()
