"""The server's report of its own work in a run, on the clock of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tare.databases.extensions import Chronicle, Event, EventSource
from tare.errors import TareError
from tare.record.chronicle import ServerEvent, ServerReport
from tare.run.attempt.server import Server, Sut
from tare.run.clock import Clock


@dataclass(frozen=True)
class Reports:
    """Reports of the servers. `whole`: the record's entry, `None` if there is none; `of_nodes`: the nodes' entries.

    `files`: raw files, name → text.
    """

    whole: ServerReport | None = None
    of_nodes: Mapping[str, ServerReport | None] = field(default_factory=dict)
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
    found, files, notices = dict[str, ServerReport | None](), dict[str, str](), list[str]()
    for server in sut.servers:
        name = server.node.name
        try:
            chronicle = event_source.tell(server.plan, server.inside)
        except (TareError, OSError, ValueError, TypeError, LookupError) as error:
            found[name] = None
            notices.append(f"the server's own work could not be read{_which(server)}: {error}")
            continue
        own_s = -(wall_ahead_s or {}).get(name, -offset_s)
        found[name] = _report(chronicle, own_s, began_s - own_s)
        files |= {server.node.before(file): text for file, text in chronicle.files.items()}
    return Reports(_of_all(found), found, files, tuple(notices))


def _of_all(found: Mapping[str, ServerReport | None]) -> ServerReport | None:
    """Return the single server's report; for several servers, their events in order of their ends."""
    if len(found) == 1:
        return next(iter(found.values()))
    known = {name: each for name, each in found.items() if each is not None}
    if len(known) < len(found):
        return None
    events = [replace(event, node=name) for name, each in known.items() for event in each.events]
    return ServerReport(tuple(sorted(events, key=lambda event: event.ended_monotonic_s or 0.0)))


def _which(server: Server) -> str:
    return f" of node {server.node.name}" if server.node.part else ""


def _report(chronicle: Chronicle, offset_s: float, since: float) -> ServerReport:
    events = tuple(_event(event, offset_s) for event in chronicle.events if event.ended_at >= since)
    return ServerReport(events, chronicle.tables, chronicle.pools, chronicle.dropped)


def _event(event: Event, offset_s: float) -> ServerEvent:
    """Convert an event, with its times on CLOCK_MONOTONIC as in the trace; server and host share a wall clock."""
    return ServerEvent(
        kind=event.kind,
        name=event.name,
        began_at=event.began_at,
        ended_at=event.ended_at,
        began_monotonic_s=None if event.began_at is None else event.began_at + offset_s,
        ended_monotonic_s=event.ended_at + offset_s,
        read_bytes=event.read_bytes,
        written_bytes=event.written_bytes,
    )
