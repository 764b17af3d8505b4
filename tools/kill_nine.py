"""Kill `tare run` with SIGKILL at random moments, again and again, and show that nothing is lost, doubled or left.

    python -m tools.kill_nine percona-2016 --scale demo --stores build/kill-nine --times 20

Each kill hits the whole of one `tare run`; the next one on the same store goes on. A store that gets full is put
aside and a new one begun, until the kills are used up; the last is then run to its end. Exit code 0 if all held.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.cli.study.run import NO_GOOD_RESULT
from tare.errors import EnvironmentLacks, StoreError
from tare.run.attempt.context import make_token
from tare.sites.engine import LABEL, connect
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.process import alive, from_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import Store, open_store, verify
from tare.store.rows import record_digest

LONGEST_STUDY_S = 3600.0


@dataclass
class Trial:
    """What to kill, how often, and what came to light."""

    command: Sequence[str]
    stores: Path
    rng: random.Random
    longest_s: float
    layout: Layout = field(default_factory=default_layout)
    number: int = 1
    committed: dict[tuple[str, int], str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def store(self) -> Path:
        """The store in use."""
        return self.stores / f"store-{self.number}"

    def kill_once(self) -> bool:
        """Start, wait a random while, kill. `False` when the study was over before."""
        delay_s = self.rng.uniform(0.0, self.longest_s)
        with subprocess.Popen([*self.command, "--store", str(self.store)], stdout=subprocess.DEVNULL) as running:
            try:
                code = running.wait(delay_s)
            except subprocess.TimeoutExpired:
                running.kill()
                code = None
        self.look()
        outcome = f"killed after {delay_s:.2f} s" if code is None else f"ended with {code} before"
        sys.stdout.write(f"{outcome}; {len(self.committed)} attempts are committed\n")
        sys.stdout.flush()
        if code not in (None, 0, NO_GOOD_RESULT):
            self.problems.append(f"tare run ended with {code}")
        return code is None

    def look(self) -> None:
        """What was committed before must be there, unchanged."""
        try:
            now = {(record.run_id, record.attempt): record_digest(record) for record in self.opened().records()}
        except StoreError as error:
            now = {}  # killed before there was one
            if self.committed:
                self.problems.append(f"the store cannot be opened: {error}")
        for key, digest in self.committed.items():
            if now.get(key) != digest:
                self.problems.append(f"the committed record of {key[0]}, attempt {key[1]}, is lost or changed")
        self.committed = now

    def opened(self) -> Store:
        """The store, for reading."""
        return open_store(self.store)

    def finish(self) -> None:
        """Run the study to its end, and look at all that should be and at all that should not."""
        argv = [*self.command, "--store", str(self.store)]
        code = subprocess.run(argv, stdout=subprocess.DEVNULL, check=False, timeout=LONGEST_STUDY_S).returncode
        if code != 0:
            self.problems.append(f"the last tare run on {self.store} ended with {code}")
        self.look()
        self.check_store()
        self.problems += left_behind(self.opened(), self.layout)

    def check_store(self) -> None:
        """Every planned run exactly once good, and the store whole."""
        store = self.opened()
        good = Counter(record.run_id for record in store.records() if record.outcome.ok)
        self.problems += [
            f"{run.id} has {good[run.id]} good attempts" for run in store.plan.runs if good[run.id] != 1
        ]
        self.problems += verify(store)

    def next_store(self) -> None:
        """Put a full store aside."""
        self.check_store()
        self.number += 1
        self.committed = {}


def left_behind(store: Store, layout: Layout) -> Iterator[str]:
    """Everything of tare's that is still on the machine, but for caches and what another living tare uses."""
    ledger = SqliteLedger(layout.ledger)
    yield from (f"in the ledger: {entry.kind} {entry.ident}" for entry in ledger.abandoned())
    owners = {entry.owner for entry in ledger.entries() if not entry.keep}
    if layout.work.is_dir() and not owners:
        yield from (f"work directory {path}" for path in layout.work.iterdir())
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    yield from (f"mount {mount}" for mount in mounts if mount.startswith(f"{layout.home}/"))
    yield from _of_engine()
    tokens = _tokens(store)
    for entry in Path("/proc").iterdir():
        described = _text(entry / "cgroup") + _text(entry / "cmdline") if entry.name.isdecimal() else ""
        if any(mark in described for mark in (*tokens, f"{layout.work}/")):
            yield f"process {entry.name}: {_text(entry / 'cmdline')}"
    roots = [Path(line.split()[1]) for line in _text(Path("/proc/self/mounts")).splitlines() if " cgroup" in line]
    left = {path.name for root in roots for path in (root / "tare").glob("*")}
    yield from (f"control group tare/{token}" for token in left & tokens)


def _of_engine() -> Iterator[str]:
    try:
        engine = connect()
    except EnvironmentLacks:
        return
    host = LocalHost()
    try:
        for container in engine.containers.list(all=True, filters={"label": LABEL}):
            if not alive(host, from_ident(container.labels[LABEL])):
                yield f"container {container.name}"
        for network in engine.networks.list(filters={"label": LABEL}):
            if not alive(host, from_ident(network.attrs["Labels"][LABEL])):
                yield f"network {network.name}"
    finally:
        engine.close()


def _tokens(store: Store) -> set[str]:
    most = max((record.attempt for record in store.records()), default=1) + 1
    return {make_token(store.id, run.id, number) for run in store.plan.runs for number in range(1, most + 1)}


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def main() -> int:
    """Carry out the trial."""
    parser = argparse.ArgumentParser(description="Kill tare run at random moments and check that nothing is lost.")
    parser.add_argument("study")
    parser.add_argument("--scale", default=None)
    parser.add_argument("--blocks", default=None)
    parser.add_argument("--stores", type=Path, required=True, help="a directory for the stores; must not exist")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest-s", type=float, default=20.0, help="the latest moment of a kill")
    parser.add_argument("--tare", nargs="+", default=[sys.executable, "-m", "tare"], help="the command")
    given = parser.parse_args()
    given.stores.mkdir(parents=True)
    chosen = {"--scale": given.scale, "--blocks": given.blocks}
    options = [word for name, value in chosen.items() if value is not None for word in (name, value)]
    command = [*given.tare, "run", given.study, *options, "--quiet"]
    trial = Trial(command, given.stores, random.Random(given.seed), given.longest_s)
    began, killed = time.monotonic(), 0
    while killed < given.times and not trial.problems:
        if trial.kill_once():
            killed += 1
        else:
            trial.next_store()
    trial.finish()
    sys.stdout.write("".join(f"PROBLEM: {problem}\n" for problem in trial.problems))
    runs = sum(len(open_store(path).records()) for path in given.stores.iterdir())
    sys.stdout.write(
        f"{killed} kills, {trial.number} stores, {runs} attempts, {len(trial.problems)} problems, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    return 1 if trial.problems else 0


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(main())
