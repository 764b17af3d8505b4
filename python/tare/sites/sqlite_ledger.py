"""The ledger in one SQLite file, shared by every tare process of this user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tare.errors import StoreError
from tare.sites import Host, Process
from tare.sites.ledger import Kind, Made
from tare.sites.local import LocalHost, own_process
from tare.sites.process import alive, from_ident, to_ident

FORMAT = 1
_BUSY_S = 30.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS made (
    host TEXT NOT NULL, kind TEXT NOT NULL, ident TEXT NOT NULL,
    owner TEXT NOT NULL, keep INTEGER NOT NULL,
    PRIMARY KEY (host, kind, ident)
)
"""


class SqliteLedger:
    """WAL with synchronous=FULL: a line noted survives `kill -9` and loss of power.

    `here` is the machine tare runs on, where the owners of the entries live.
    """

    def __init__(self, path: Path, *, here: Host | None = None) -> None:
        self._path = path
        self._here = here or LocalHost()
        self.owner = own_process()
        with self._open() as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > FORMAT:
                raise StoreError(f"{path} was written by a newer tare (format {found})", hint="update tare")
            db.execute(_SCHEMA)
            db.execute(f"PRAGMA user_version = {FORMAT}")

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:
        """About to be made; noted twice, the later owner holds it."""
        with self._open() as db:
            db.execute(
                "INSERT OR REPLACE INTO made (host, kind, ident, owner, keep) VALUES (?, ?, ?, ?, ?)",
                (host, kind.value, ident, to_ident(self.owner), int(keep)),
            )

    def forget(self, kind: Kind, ident: str, *, host: str = "local") -> None:
        """Seen to be gone; striking out what does not stand there is no error."""
        with self._open() as db:
            db.execute("DELETE FROM made WHERE host = ? AND kind = ? AND ident = ?", (host, kind.value, ident))

    def entries(self) -> tuple[Made, ...]:
        """In order of removal: by kind, then the youngest first."""
        with self._open() as db:
            rows = db.execute("SELECT kind, ident, host, owner, keep FROM made ORDER BY rowid DESC").fetchall()
        made = [
            Made(Kind(kind), ident, host, from_ident(owner), bool(keep)) for kind, ident, host, owner, keep in rows
        ]
        order = list(Kind)
        return tuple(sorted(made, key=lambda entry: order.index(entry.kind)))

    def abandoned(self) -> tuple[Made, ...]:
        """Entries whose owner lives no more: another boot, a pid gone or given to another."""
        living: dict[Process, bool] = {}
        for entry in (entries := self.entries()):
            if entry.owner not in living:
                living[entry.owner] = alive(self._here, entry.owner)
        return tuple(entry for entry in entries if not entry.keep and not living[entry.owner])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One connection a call: nothing to hand over to a thread or a fork, nothing to close at the end."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self._path, timeout=_BUSY_S)
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                with db:
                    yield db
            finally:
                db.close()
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"the ledger {self._path} cannot be used: {error}") from error
