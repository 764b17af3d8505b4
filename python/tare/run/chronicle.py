"""What the server tells of its own work in a run, on the clock of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tare.databases.chronicle import Chronicle, Chronicler, Event
from tare.errors import TareError
from tare.run.clock import Clock
from tare.run.server import Server
from tare.run.tree import to_tree


@dataclass(frozen=True)
class Asked:
    """`tree`: what the record keeps, `None` where nothing could be had. `files`: raw files of it, name → text."""

    tree: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    notice: str | None = None


def ask(server: Server, chronicler: Chronicler | None, clock: Clock, since: float) -> Asked:
    """Ask a server that has something to tell; of events, those that ended after `since` (wall clock).

    What goes wrong here is a notice: the run was measured all the same.
    """
    if chronicler is None:
        return Asked()
    try:
        told = chronicler.tell(server.plan, server.inside)
    except (TareError, OSError, ValueError, TypeError, LookupError) as error:
        return Asked(notice=f"what the server did by itself could not be asked: {error}")
    return Asked(_tree(told, clock.monotonic() - clock.wall(), since), told.files)


def _tree(told: Chronicle, offset_s: float, since: float) -> dict[str, Any]:
    tree = to_tree(told)
    events = [_event(event, offset_s) for event in told.events if event.ended_at >= since]
    return {"events": events, **{name: tree[name] for name in ("tables", "pools", "dropped")}}


def _event(event: Event, offset_s: float) -> dict[str, Any]:
    """With its place on CLOCK_MONOTONIC, on which the trace lies; server and host have one wall clock."""
    began = None if event.began_at is None else event.began_at + offset_s
    return {**to_tree(event), "began_monotonic_s": began, "ended_monotonic_s": event.ended_at + offset_s}
