"""Abilities of some databases: to be a cluster of several nodes, and to report their own background work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tare.databases import Exec, ServerPlan


def node_address(port: int, number: int = 1) -> str:
    """Loopback address that no other node of the machine has, made from its port and its number in a cluster.

    So only that port has to be free. `number` counts from 1. The last octet is odd below port 32768 and even above.
    """
    return f"127.{64 + (port >> 8) % 128}.{port & 255}.{2 * number - 1 + (port >> 15)}"


class Cluster(Protocol):
    """A cluster whose nodes start one after the other; each finds the first node by its plan's `member`."""

    def is_complete(self, plan: ServerPlan, inside: Exec) -> bool:
        """Whether this node, which answers queries, sees all nodes of the cluster at work, itself included."""
        ...


Figures = Mapping[str, float | str | None]
"""Figure by the server's own name → value; `None` where the server prints NaN."""


@dataclass(frozen=True)
class Event:
    """Background work of a server, with its data and its times in seconds since the epoch.

    `began_at`: `None` if the server does not report it.
    """

    kind: Literal["compaction"]
    name: str
    began_at: float | None
    ended_at: float
    read_bytes: int
    written_bytes: int


@dataclass(frozen=True)
class Chronicle:
    """A server's account of its background work.

    `events`: in the order in which they ended. `tables`: `KEYSPACE.TABLE` → figures. `pools`: thread pool →
    figures. `dropped`: kind of message → number of dropped ones. `files`: output of the tools, name → text.
    """

    events: tuple[Event, ...] = ()
    tables: Mapping[str, Figures] = field(default_factory=dict)
    pools: Mapping[str, Figures] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


class EventSource(Protocol):
    """Reads a running server's account after the measure phase. Not in `Database`, as few servers have one."""

    def tell(self, plan: ServerPlan, inside: Exec) -> Chronicle:
        """Read the account. Raises `RunFailed` if the server does not answer, or its answer cannot be read."""
        ...
