"""Hosts that may be out of reach for a while, or for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable


@runtime_checkable
class CanBeLost(Protocol):
    """A host behind a connection."""

    def lost_for_good(self) -> str | None:
        """Why, once it cannot come back any more; `None` where it answers. Waits while that is open."""
        ...

    def tell_losses(self, tell: Callable[[str], None]) -> None:
        """Have `tell` hear, in another thread, that it is unreachable and how long that is borne, or is back."""
        ...
