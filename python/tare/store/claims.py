"""Claims of blocks in a PostgreSQL store: leases by the server's clock, renewed while a tare lives."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlalchemy import Connection, Engine, Float, cast, delete, extract, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from tare.errors import StoreError
from tare.run.claims import EVERYTHING
from tare.store.postgresql import claims, lock
from tare.store_place import StorePlace

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

LEASE_S = 90.0
"""Time after which the blocks of a silent tare are free."""
_RENEW_S = 20.0


class Leases:
    """The claims of one tare. Can be used from any thread."""

    def __init__(self, engine: Engine, place: StorePlace, lease_s: float = LEASE_S) -> None:
        self._engine, self._place, self._lease_s = engine, place, lease_s
        self.holder = uuid4().hex
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="leases", daemon=True)

    def begin(self) -> None:
        """Start renewing all claims."""
        self._thread.start()

    def end(self) -> None:
        """Release every claim. If the server is unreachable, claims expire with their lease."""
        self._ended.set()
        self._thread.join()
        with suppress(SQLAlchemyError), self._engine.begin() as connection:
            connection.execute(delete(claims).where(claims.c.holder == self.holder))

    def take(self, block: int) -> bool:
        """Claim a block; return whether this tare holds it now."""
        with self._engine.begin() as connection:
            return self._claim_or_holder(connection, [block]) is None

    def give_back(self, block: int) -> None:
        """Release a block, so that others may take it."""
        with self._engine.begin() as connection:
            mine = (claims.c.holder == self.holder) & (claims.c.block == block)
            connection.execute(delete(claims).where(mine))

    def hold(self, connection: Connection, blocks: Collection[int]) -> None:
        """Hold these blocks in the caller's transaction. Raises `StoreError` if another tare has one of them."""
        if (other := self._claim_or_holder(connection, blocks)) is not None:
            raise StoreError(
                f"{other} writes the same blocks of the store {self._place}; the latest results are left out",
                hint=f"it took them over after {self._lease_s:g} s without contact with this tare; run tare again",
            )

    def _claim_or_holder(self, connection: Connection, blocks: Collection[int]) -> str | None:
        """Claim all of these blocks, or return the tare that has one of them."""
        lock(connection, self._place, "claimed")
        alive = (claims.c.holder != self.holder) & (claims.c.until > _now())
        if EVERYTHING not in blocks:
            alive &= claims.c.block.in_([EVERYTHING, *blocks])
        other = connection.execute(select(claims.c.tare).where(alive).limit(1)).scalar_one_or_none()
        if other is not None:
            return str(other)
        held = set(connection.execute(select(claims.c.block).where(claims.c.holder == self.holder)).scalars())
        lacking = set() if EVERYTHING in held else set(blocks) - held
        if lacking:
            stale = claims.c.block.in_(lacking) if EVERYTHING not in blocks else claims.c.holder != self.holder
            connection.execute(delete(claims).where(stale))
            until = _now() + self._lease_s
            rows = [{"block": block, "holder": self.holder, "tare": _this_tare()} for block in sorted(lacking)]
            connection.execute(insert(claims).values(until=until), rows)
        return None

    def _renew(self) -> None:
        while not self._ended.wait(min(_RENEW_S, self._lease_s / 4)):
            with suppress(SQLAlchemyError), self._engine.begin() as connection:  # a later renewal may succeed
                mine = claims.c.holder == self.holder
                connection.execute(update(claims).where(mine).values(until=_now() + self._lease_s))


def _now() -> ColumnElement[float]:
    return cast(extract("epoch", func.clock_timestamp()), Float)


def _this_tare() -> str:
    return f"tare on {socket.gethostname()} (process {os.getpid()})"


def makers(connection: Connection) -> tuple[str, ...]:
    """Tares that make blocks now, as host and process."""
    alive = select(claims.c.tare).where(claims.c.until > _now()).distinct().order_by(claims.c.tare)
    return tuple(map(str, connection.execute(alive).scalars()))
