"""What is known of an attempt so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tare.run.record import Side


@dataclass
class Found:
    """What is known of the attempt so far; a failed one keeps what it came to know."""

    host: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] | None = None
    emulated: tuple[Side, ...] = ()
    snapshot: Mapping[str, Any] | None = None
    effective: Mapping[str, str] | None = None
    parity: Mapping[str, Any] = field(default_factory=lambda: {"sut": None, "client": None})
    path: Mapping[str, Any] | None = None
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Node → `address`, `effective`, `parity`, `path`, `parity_after`, `chronicle`; the first one's stand above."""
    usage: Mapping[str, Any] | None = None
    monitors: Mapping[str, Any] | None = None
    chronicle: Mapping[str, Any] | None = None
    measurement: Mapping[str, Any] | None = None
    continues: str | None = None
    duet: Mapping[str, Any] | None = None
    raw: tuple[str, ...] = ()
    notices: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """Raw files of tare's own: name → text."""

    def of_nodes(self, key: str, values: Mapping[str, Any]) -> None:
        """Take down something of each node, by its name."""
        for name, value in values.items():
            self.nodes.setdefault(name, {})[key] = value
