"""Write a store at a URL together with other tares."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Engine, Select, func, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from tare.errors import StoreError
from tare.record.run_record import RunRecord
from tare.run.claims import EVERYTHING
from tare.store.claims import LEASE_S, Leases
from tare.store.postgresql import committed, is_lost
from tare.store.raw import RawFile
from tare.store.rows import REFERENCES, Facts, Rows, from_row
from tare.store.schema import facts, runs
from tare.store.write import Writer, insert_rows
from tare.store_place import StorePlace

T = TypeVar("T")
_PATIENCE_S, _PAUSE_S = 300.0, 2.0
"""How long to wait for a server that is restarted, and the pause between tries."""


class SharedWriter(Writer):
    """Commits blocks that it has claimed, and retries if the connection is lost."""

    def __init__(
        self,
        place: StorePlace,
        engine: Engine,
        lease_s: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        super().__init__(place, engine)
        self._leases = Leases(engine, place, LEASE_S if lease_s is None else lease_s)
        self._sleep, self._patience_s = sleep, patience_s
        self._heard: set[tuple[str, int]] = set()

    @property
    def claims(self) -> SharedWriter:
        """The writer itself, which claims blocks for this coordinator."""
        return self

    @contextmanager
    def at_work(self) -> Iterator[SharedWriter]:
        """Renew claims inside the context; release them at its end."""
        self._leases.begin()
        try:
            yield self
        finally:
            self._leases.end()

    def take(self, block: int) -> bool:
        """Claim the block; return whether this tare holds it now."""
        return self._retried(lambda: self._leases.take(block))

    def give_back(self, block: int) -> None:
        """Release the block."""
        self._retried(lambda: self._leases.give_back(block))

    def alone(self) -> None:
        """Claim all blocks. Raises `StoreError` if another tare has one."""
        if not self.take(EVERYTHING):
            raise StoreError(
                f"another tare is running blocks of the study in {self.place}",
                hint="give each tare one site (--sites FILE --site NAME), or wait for the other to end",
            )

    def news(self) -> Sequence[RunRecord]:
        """Records that any tare has committed since the last call."""
        return self._retried(self._news)

    def insert(self, rows: Sequence[Rows], files: Sequence[RawFile]) -> None:
        """Insert in one transaction that also checks that no other tare has the blocks."""
        tries = itertools.count()

        def once() -> None:
            with self.engine.begin() as connection:
                if next(tries) and committed(connection, rows):
                    return
                self._leases.hold(connection, {int(row.run["block"]) for row in rows})
                insert_rows(connection, rows, files)

        try:
            self._retried(once)
        except IntegrityError as error:
            raise StoreError(
                f"another tare has made {rows[0].run['run_id']} of the store {self.place} meanwhile, so that "
                "what was just made is left out",
                hint="run the same command again: it continues with the remaining blocks",
            ) from error

    def _news(self) -> Sequence[RunRecord]:
        with self.engine.connect() as connection:
            if connection.execute(select(func.count()).select_from(runs)).scalar_one() == len(self._heard):
                return ()
            keys = {(row.run_id, row.attempt) for row in connection.execute(select(runs.c.run_id, runs.c.attempt))}
            new = keys - self._heard
            asked = connection.execute(_of(new)).mappings()
            rows = [row for row in asked if (row["run_id"], row["attempt"]) in new]
            named = {row[part] for row in rows for part in REFERENCES} - {None}
            of_named = connection.execute(select(facts).where(facts.c.digest.in_(named)))
            shared = Facts({row.digest: row.body for row in of_named})
        self._heard |= new
        return sorted((from_row(row, shared) for row in rows), key=lambda one: (one.index, one.attempt))

    def _retried(self, do: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return do()
            except SQLAlchemyError as error:
                if not is_lost(error) or time.monotonic() > deadline:
                    raise
            self._sleep(_PAUSE_S)


def _of(keys: set[tuple[str, int]]) -> Select[Any]:
    return select(runs).where(runs.c.run_id.in_({run for run, _ in keys}))
