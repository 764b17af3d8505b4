"""What this process's terminal is like."""

from __future__ import annotations

from typing import TypedDict

from rich.console import Console


class OwnTerminal(TypedDict):
    """Options of what renders for a terminal."""

    width: int
    colour: bool


def own_terminal() -> OwnTerminal:
    """Return the width of this process's terminal, and whether it shows colours."""
    console = Console()
    return OwnTerminal(width=console.width, colour=console.is_terminal and not console.no_color)
