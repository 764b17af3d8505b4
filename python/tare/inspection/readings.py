"""Facts as they are read: each with the place where it was read, or the reason why it was not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tare.traps.predicate import NONE, Facts, Known

NEEDS_ROOT = "only root may read it"


@dataclass(frozen=True)
class Reading:
    """One fact. `why`: why its value is not known."""

    value: Known | None
    where: str
    why: str | None = None


@dataclass
class Readings:
    """The facts of one server, filled while they are read."""

    known: dict[str, Reading] = field(default_factory=dict)

    def put(self, name: str, value: Known | None, where: str, why: str = NEEDS_ROOT) -> None:
        """Keep a fact; without a value, `why` is kept."""
        self.known[name] = Reading(value, where, None if value is not None else why)

    def limit(self, name: str, value: Known | None, where: str, *, read: bool) -> None:
        """Keep a limit of which `None` means that there is none, if it was `read` at all."""
        self.put(name, NONE if value is None and read else value, where)

    @property
    def facts(self) -> Facts:
        """The values alone."""
        return {name: reading.value for name, reading in self.known.items()}

    @property
    def unread(self) -> Mapping[str, str]:
        """Facts without a value → why."""
        return {name: reading.why for name, reading in self.known.items() if reading.why is not None}
