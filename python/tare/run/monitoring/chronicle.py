"""The server's report of its own work in a run, on the clock of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tare.databases.extensions import Chronicle, Event, EventSource
from tare.errors import TareError
from tare.record.run_record import to_tree
from tare.run.attempt.server import Server, Sut
from tare.run.clock import Clock


@dataclass(frozen=True)
class Reports:
    """Reports of the servers. `tree`: the record's entry, `None` if there is none; `of_nodes`: the nodes' entries.

    `files`: raw files, name → text.
    """

    tree: Mapping[str, Any] | None = None
    of_nodes: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def ask_all(
    sut: Sut,
    event_source: EventSource | None,
    clock: Clock,
    since: float,
    wall_ahead_s: Mapping[str, float] | None = None,
) -> Reports:
    """Query the servers' own reports, with events that ended after `since` (wall clock).

    `wall_ahead_s`: node on a host of its own → seconds by which its wall clock is ahead of the trace's clock.

    A failure is only a notice, since the run was measured all the same. If a node gives no report, there is no
    common report.
    """
    if event_source is None:
        return Reports()
    offset_s = clock.monotonic() - clock.wall()
    began_s = since + offset_s
    trees, files, notices = dict[str, Mapping[str, Any] | None](), dict[str, str](), list[str]()
    for server in sut.servers:
        name = server.node.name
        try:
            chronicle = event_source.tell(server.plan, server.inside)
        except (TareError, OSError, ValueError, TypeError, LookupError) as error:
            trees[name] = None
            notices.append(f"the server's own work could not be read{_which(server)}: {error}")
            continue
        own_s = -(wall_ahead_s or {}).get(name, -offset_s)
        trees[name] = _tree(chronicle, own_s, began_s - own_s)
        files |= {server.node.before(file): text for file, text in chronicle.files.items()}
    return Reports(_of_all(trees), trees, files, tuple(notices))


def _of_all(trees: Mapping[str, Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """Return the single server's report; for several servers, their events in order of their ends."""
    if len(trees) == 1:
        return next(iter(trees.values()))
    if any(tree is None for tree in trees.values()):
        return None
    events = [{**event, "node": name} for name, tree in trees.items() for event in (tree or {})["events"]]
    return {"events": sorted(events, key=lambda event: float(event["ended_monotonic_s"]))}


def _which(server: Server) -> str:
    return f" of node {server.node.name}" if server.node.part else ""


def _tree(chronicle: Chronicle, offset_s: float, since: float) -> dict[str, Any]:
    tree = to_tree(chronicle)
    events = [_event(event, offset_s) for event in chronicle.events if event.ended_at >= since]
    return {"events": events, **{name: tree[name] for name in ("tables", "pools", "dropped")}}


def _event(event: Event, offset_s: float) -> dict[str, Any]:
    """Convert an event, with its times on CLOCK_MONOTONIC as in the trace; server and host share a wall clock."""
    began = None if event.began_at is None else event.began_at + offset_s
    return {**to_tree(event), "began_monotonic_s": began, "ended_monotonic_s": event.ended_at + offset_s}
