"""Stores that a call fills one after the other, what must be in them, and what tare left on the machine."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import EnvironmentLacks, StoreError
from tare.record.run_record import RunRecord
from tare.run.attempt.context import make_token
from tare.sites.engine import connect
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.marks import LABEL
from tare.sites.process import alive, from_ident
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import Store, open_store, verify
from tools.chaos.processes import text


@dataclass
class Stores:
    """What was committed, and what came to light. `longest_s`: latest moment of a fault after the last."""

    command: Sequence[str]
    stores: Path
    rng: random.Random
    longest_s: float
    layout: Layout = field(default_factory=default_layout)
    number: int = 1
    committed: dict[tuple[str, int], RunRecord] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def store(self) -> Path:
        """The store in use."""
        return self.stores / f"store-{self.number}"

    def look(self) -> None:
        """What was committed before must be there, unchanged."""
        try:
            now = {(record.run_id, record.attempt): record for record in self.opened().records()}
        except StoreError as error:
            now = {}  # killed before there was one
            if self.committed:
                self.problems.append(f"the store cannot be opened: {error}")
        for key, record in self.committed.items():
            if now.get(key) != record:
                self.problems.append(f"the committed record of {key[0]}, attempt {key[1]}, is lost or changed")
        self.committed = now

    def opened(self) -> Store:
        """The store, for reading."""
        return open_store(self.store)

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
        described = text(f"{entry}/cgroup") + _line(entry) if entry.name.isdecimal() else ""
        if any(mark in described for mark in (*tokens, f"{layout.work}/")):
            yield f"process {entry.name}: {_line(entry)}"
    roots = [Path(line.split()[1]) for line in text("/proc/self/mounts").splitlines() if " cgroup" in line]
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


def _line(process: Path) -> str:
    return text(f"{process}/cmdline").replace("\0", " ")
