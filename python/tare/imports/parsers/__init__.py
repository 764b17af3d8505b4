"""Parsers of what load generators print: the contract. One file each; `registry` names them.

A parser recognises its tool's output by the output itself, splits a file into its reports, and says of each what it
measured or why it is no good run, and what the report says of itself (`says`). It never makes up a figure: what the
report lacks is `None`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from tare.imports.parsers.columns import Columns
from tare.record.measurement import Measurement

LARGEST_FIGURE = 1e15
"""Largest plausible throughput per second or latency in ms; sums and ratios of such figures stay finite."""


@dataclass(frozen=True)
class Report:
    """One report of a file. `failure`: why there is no measurement.

    `says`: name → what the report says of itself, as a text: `threads`, `version`, `test`, `rate`. `line`: where it
    begins. `text`: the report alone. `distortions`: names in
    `analyze.validity.distortions` that its figures are known to have. `columns`: windows that `measurement` lacks.
    """

    measurement: Measurement | None
    failure: str | None
    says: Mapping[str, str] = field(default_factory=dict)
    line: int = 1
    text: str = ""
    distortions: tuple[str, ...] = ()
    columns: Columns | None = None

    @property
    def whole(self) -> Measurement | None:
        """The measurement with its windows."""
        if self.measurement is None or self.columns is None:
            return self.measurement
        return replace(self.measurement, windows=self.columns.windows())


class Parser(Protocol):
    """Contract of a parser. `title`: tool and versions. `says`: names that its reports may say of themselves."""

    title: ClassVar[str]
    says: ClassVar[tuple[str, ...]]

    def recognises(self, text: str) -> bool:
        """Whether the text is this tool's output, whole or not."""
        ...

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:
        """Yield the reports of a file in order; a bad report has a `failure`."""
        ...
