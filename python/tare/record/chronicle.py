"""A server's report of its own work, as a record keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

Figures: TypeAlias = Mapping[str, int | float | str | None]
"""Figure by the server's own name → value; `None` where the server prints NaN."""


@final
@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One piece of background work."""

    kind: str
    """`compaction`."""
    name: str | None = None
    """`KEYSPACE.TABLE`."""
    began_at: float | None = None
    """Start on the wall clock; `null` if the log does not say how long it took."""
    ended_at: float | None = None
    """End on the wall clock."""
    began_monotonic_s: float | None = None
    """Start on the host's CLOCK_MONOTONIC, the clock of the trace; `null` as `began_at`."""
    ended_monotonic_s: float | None = None
    """End on that clock."""
    read_bytes: int | None = None
    """Bytes that it read."""
    written_bytes: int | None = None
    """Bytes that it wrote."""
    node: str | None = None
    """The node that did it, if there are several."""


@final
@dataclass(frozen=True, slots=True)
class ServerReport:
    """The server's own report of its work; for Cassandra, from nodetool and the log.

    The raw files contain the output of nodetool as `nodetool-….json`. If tare cannot read the report, or a node
    does not answer, it is `null` with a notice, and the run stays valid.
    """

    events: tuple[ServerEvent, ...] = ()
    """The server's own work since the run began, ordered by end; of all nodes, if there are several."""
    tables: Mapping[str, Figures] | None = None
    """`KEYSPACE.TABLE` → figure → value, as `nodetool tablestats` names them, without the server's own tables. If
    there are several nodes, only `nodes` has this and the next two."""
    pools: Mapping[str, Figures] | None = None
    """Thread pool → figure → value, as `nodetool tpstats` names them."""
    dropped: Mapping[str, int] | None = None
    """Kind of message → how many the server dropped."""
