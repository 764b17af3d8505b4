"""What only some databases can: be a cluster of several nodes, and report their own background work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tare.databases import Exec, ServerPlan


def node_address(port: int, number: int = 1) -> str:
    """One that no other node of the machine has, made from its port and, in a cluster, from its number (from 1).

    So nothing but that port has to be free. The last octet is odd below port 32768 and even above.
    """
    return f"127.{64 + (port >> 8) % 128}.{port & 255}.{2 * number - 1 + (port >> 15)}"


class Cluster(Protocol):
    """Of nodes that are started one after the other, each given the first by its plan's `member`."""

    def together(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether this node, which answers queries, sees all nodes of the cluster at work, itself too."""
        ...


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
        """All its answers. Raises `RunFailed` where it does not answer, or cannot be understood."""
        ...
