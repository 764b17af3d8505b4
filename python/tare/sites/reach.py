"""Hosts that may be unreachable, temporarily or forever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable


@runtime_checkable
class CanBeLost(Protocol):
    """A host behind a connection."""

    def lost_for_good(self) -> str | None:
        """Why the host cannot come back any more; `None` if it answers. Waits while neither is certain."""
        ...

    def tell_losses(self, tell: Callable[[str], None]) -> None:
        """Report losses to `tell`, called in another thread.

        A report says that the host is unreachable and for how long that is tolerated, or that it is back.
        """
        ...
