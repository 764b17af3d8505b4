"""Hosts that may be out of reach for a while, or for good."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class CanBeLost(Protocol):
    """A host behind a connection."""

    def lost_for_good(self) -> str | None:
        """Why, once it cannot come back any more; `None` where it answers. Waits while that is open."""
        ...
