"""One node of a SUT of several nodes, as a record keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from tare.record.chronicle import ServerReport
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.network_path import NetworkPath
from tare.record.observation import Observation


@final
@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the record says of one node.

    The record's own `effective`, `parity.sut` and `path` are those of the first node; an attempt whose nodes differ
    is refused.
    """

    address: str | None = None
    """Address at which the client reaches it."""
    effective: Mapping[str, str] | None = None
    """Settings read back from it."""
    parity: Observation | None = None
    """What is in force around it, as `parity.sut`."""
    parity_after: Observation | None = None
    """The same after the measure phase."""
    path: NetworkPath | None = None
    """How the client's traffic reaches it, as `path`."""
    chronicle: ServerReport | None = None
    """Its report of its own work, as `chronicle`."""
    on: str | None = None
    """Name of its host, if nodes have separate hosts; else `null`, as are the next three."""
    host: HostFacts | None = None
    """Facts of that host."""
    engine: EngineFacts | None = None
    """Facts of the engine there."""
    peers: Mapping[str, NetworkPath | None] | None = None
    """Other node → the path of the connections that this node made to it; `null` if it made none."""
