"""What a database tells of its own work when a measure phase is over: what it did by itself, and its counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tare.databases import Exec, ServerPlan

Figures = Mapping[str, float | str | None]
"""A server's own name → value; what it prints as NaN is `None`."""


@dataclass(frozen=True)
class Event:
    """Work that a server did by itself, from when to when (seconds since the epoch), on which data.

    `began_at`: `None` where it does not tell.
    """

    kind: Literal["compaction"]
    name: str
    began_at: float | None
    ended_at: float
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True)
class Chronicle:
    """`events` in the order in which they ended. `tables`: `KEYSPACE.TABLE` → figures; `pools`: of threads.

    `dropped`: kind of message → how many were given up. `files`: what the tools printed, name → text.
    """

    events: tuple[Event, ...] = ()
    tables: Mapping[str, Figures] = field(default_factory=dict)
    pools: Mapping[str, Figures] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


class Chronicler(Protocol):
    """Asks a running server, when nothing is measured any more; beside `Database`, as few have anything to tell."""

    def tell(self, plan: ServerPlan, inside: Exec) -> Chronicle:
        """All that it tells. Raises `RunFailed` where it does not answer, or cannot be understood."""
        ...
