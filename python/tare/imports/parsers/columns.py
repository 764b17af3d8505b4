"""Windows of a report as columns: a log may have thousands, and most are only stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from tare.record.measurement import Window

Column = Sequence[float | None]
_FIELDS = tuple(each.name for each in fields(Window))


@dataclass(frozen=True)
class Columns:
    """Field of a window → its figures in all windows; a field that is missing is unknown in each."""

    figures: Mapping[str, Column]

    def windows(self) -> tuple[Window, ...]:
        """An object for each window."""
        return tuple(Window(*row) for row in self.rows(_FIELDS))  # type: ignore[arg-type] # each column is of its field

    def rows(self, names: Sequence[str]) -> Iterator[tuple[float | None, ...]]:
        """Yield these fields of each window."""
        unknown = (None,) * len(self.figures["end_s"])
        return zip(*(self.figures.get(name, unknown) for name in names), strict=True)
