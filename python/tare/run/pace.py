"""At whose pace an attempt goes through its phases: at its own, or together with another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tare.deployments import Instance
from tare.run.driven import Driven
from tare.workloads import Window


class Pace(Protocol):
    """What an attempt tells of where it is, and waits for."""

    @property
    def moved_to(self) -> str | None:
        """The CPU list on which SUT and client stand at the end, `None` where they were not moved."""
        ...

    def meet(self) -> None:
        """The next phase may begin. Raises `RunFailed` where it never will."""
        ...

    def warmed_up(self, client: Instance) -> None:
        """The client of the warm-up has ended just now."""
        ...

    def began(self, servers: tuple[Instance, ...], client: Instance) -> None:
        """The client of the measure phase was started; without servers it is itself the SUT."""
        ...

    def ended(self) -> None:
        """It has ended."""
        ...

    def share(self, windows: Sequence[Window], drove: Driven) -> Mapping[str, Any] | None:
        """What the record is to say of having run with another; `None` for a run alone."""
        ...


@dataclass(frozen=True)
class Alone:
    """Nobody to wait for."""

    moved_to: None = None

    def meet(self) -> None:
        """At once."""

    def warmed_up(self, client: Instance) -> None:
        """Nobody is told."""

    def began(self, servers: tuple[Instance, ...], client: Instance) -> None:
        """Nobody is told."""

    def ended(self) -> None:
        """Nobody is told."""

    def share(self, windows: Sequence[Window], drove: Driven) -> None:
        """Nothing."""


ALONE = Alone()
