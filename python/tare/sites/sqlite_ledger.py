"""The ledger in one SQLite file, shared by all tare processes of this user."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tare.errors import EnvironmentLacks, StoreError
from tare.full_disk import is_full
from tare.sites import Host, Process
from tare.sites.layout import make_directory, mark_home, refuse_foreign
from tare.sites.ledger import Kind, Made
from tare.sites.local import LocalHost, own_process
from tare.sites.process import alive, from_ident, to_ident

FORMAT = 1
_BUSY_S = 30.0
_POLL_S = 0.005
_NO_PLACE = frozenset({
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PROTOCOL,
})  # fmt: skip

_SCHEMA = """
CREATE TABLE IF NOT EXISTS made (
    host TEXT NOT NULL, kind TEXT NOT NULL, ident TEXT NOT NULL,
    owner TEXT NOT NULL, keep INTEGER NOT NULL,
    PRIMARY KEY (host, kind, ident)
)
"""


class SqliteLedger:
    """Uses WAL with synchronous=FULL: a noted entry survives `kill -9` and power loss.

    `here`: the machine that tare runs on, where the owners of the entries live. `home`: if the file does not lie
    directly in it.
    """

    def __init__(self, path: Path, *, here: Host | None = None, home: Path | None = None) -> None:
        self._path = path
        self._home = home or path.parent
        self._here = here or LocalHost()
        self.owner = own_process()
        for place in (path.parent, path):
            refuse_foreign(place)
        if path.exists():
            with self._read() as db:
                _refuse_newer(path, db)

    def note(self, kind: Kind, ident: str, *, host: str = "local", keep: bool = False) -> None:
        """Note a resource that is about to be made; if noted twice, the later owner holds it."""
        with self._write() as db:
            db.execute(
                "INSERT OR REPLACE INTO made (host, kind, ident, owner, keep) VALUES (?, ?, ?, ?, ?)",
                (host, kind.value, ident, to_ident(self.owner), int(keep)),
            )

    def forget(self, kind: Kind, ident: str, *, host: str = "local") -> None:
        """Delete an entry; it need not exist."""
        if not self._path.exists():
            return
        with self._write() as db:
            db.execute("DELETE FROM made WHERE host = ? AND kind = ? AND ident = ?", (host, kind.value, ident))

    def entries(self) -> tuple[Made, ...]:
        """All entries in order of removal: by kind, then the newest first."""
        if not self._path.exists():
            return ()
        with self._read() as db:
            if not _begun(db):
                return ()
            rows = db.execute("SELECT kind, ident, host, owner, keep FROM made ORDER BY rowid DESC").fetchall()
        made = [
            Made(Kind(kind), ident, host, from_ident(owner), bool(keep)) for kind, ident, host, owner, keep in rows
        ]
        order = list(Kind)
        return tuple(sorted(made, key=lambda entry: order.index(entry.kind)))

    def abandoned(self) -> tuple[Made, ...]:
        """Entries whose owner is dead: another boot, or a pid that is gone or reused."""
        living: dict[Process, bool] = {}
        for entry in (entries := self.entries()):
            if entry.owner not in living:
                living[entry.owner] = alive(self._here, entry.owner)
        return tuple(entry for entry in entries if not entry.keep and not living[entry.owner])

    def owner_on(self, host: str) -> Process:  # noqa: ARG002 - the machine that tare runs on
        """Owner of all entries that this process makes."""
        return self.owner

    def home(self, host: str) -> str:  # noqa: ARG002 - the machine that tare runs on
        """Home on this machine."""
        return str(self._home)

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Open one connection per call: none must be handed to a thread or a fork, or closed at the end."""
        with self._failing_clearly():
            mark_home(self._home)
            make_directory(self._path.parent)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as db:
                _in_wal(db)
                db.execute("PRAGMA synchronous = FULL")
                with db:
                    _refuse_newer(self._path, db)
                    db.execute(_SCHEMA)
                    db.execute(f"PRAGMA user_version = {FORMAT}")
                    yield db

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """Open for reading, without making any file, so that no right to write is needed."""
        with self._failing_clearly():
            writable = os.access(self._path.parent, os.W_OK) and os.access(self._path, os.W_OK)
            # Reading in WAL mode writes its index; without the right to do so, there can be no concurrent writer
            # either.
            uri = f"{self._path.as_uri()}?{'mode=rw' if writable else 'immutable=1'}"
            with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_S)) as db:
                yield db

    @contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        """Blame the environment for a place that cannot be written, and the file for being no ledger."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            why = f"No space left on device ({error})" if is_full(self._path.parent) else str(error)
            problem = f"the ledger {self._path} cannot be used: {why}"
            if _no_place(error):
                hint = "set TARE_HOME to a directory that you may write to, on a file system of this machine"
                raise EnvironmentLacks(problem, hint=hint) from error
            raise StoreError(problem) from error


def _in_wal(db: sqlite3.Connection) -> None:
    """Retry while another tare makes the same file: SQLite does not wait for the lock that this change takes.

    Source: https://sqlite.org/c3ref/busy_handler.html (no busy handler where it could end in a deadlock).
    """
    deadline = time.monotonic() + _BUSY_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_S)
        else:
            return


def _begun(db: sqlite3.Connection) -> bool:
    """Whether the table exists: a tare that was killed while making the file leaves it without."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'made'").fetchone() is not None


def _refuse_newer(path: Path, db: sqlite3.Connection) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > FORMAT:
        raise StoreError(f"{path} was written by a newer tare (format {version})", hint="update tare")


def _no_place(error: sqlite3.Error | OSError) -> bool:
    """Whether no ledger can be kept there: read-only, full, or without the locks that SQLite needs.

    The low byte of an extended code is its kind (https://sqlite.org/rescode.html); a network file system without
    locks gives an I/O error or a failure of the locking protocol.
    """
    if isinstance(error, OSError):
        return True
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _NO_PLACE
