"""An arm's name in a terminal table: long names wrap after a hyphen, not within a word."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from tare.report.plain import levels_of, lines_of, plain

_LONGEST = 80


class ArmCell:
    """A cell with a name made of levels, between the width of its longest level and the whole name."""

    def __init__(self, arm: str) -> None:
        self._name = plain(arm, _LONGEST)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in lines_of(self._name, options.max_width):
            yield Text(line, overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        least = max(map(cell_len, levels_of(self._name)), default=0)
        return Measurement(least, cell_len(self._name)).with_maximum(options.max_width)
