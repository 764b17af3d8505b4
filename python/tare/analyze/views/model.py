"""Model of a view: a tool, the quantities it prints, and how they follow from the kernel's counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import polars as pl

from tare.analyze.views.formulas import at_readings, over_intervals
from tare.store.trace import Trace

Formula = Callable[[pl.DataFrame], pl.DataFrame]
"""Readings (`subject`, `series`, `at_ns` and counters, sorted) → samples (`subject`, `series`, `from_ns`, `to_ns`,
`value`). Pure. A value is null where the tool would print nothing."""


class Measure(StrEnum):
    """What a quantity measures; quantities of the same measure can be compared."""

    CONTAINER_CPU = "CPU of a control group"
    PROCESS_CPU = "CPU of a process"
    HOST_CPU = "CPU of the host"
    CONTAINER_MEMORY = "memory of a control group"
    PROCESS_MEMORY = "memory of a process"
    HOST_MEMORY = "memory of the host"
    CONTAINER_READ = "disk reads of a control group"
    CONTAINER_WRITTEN = "disk writes of a control group"
    PROCESS_DISK = "disk I/O of a process"
    HOST_DISK = "disks of the host"
    CONTAINER_NETWORK = "network of a container"
    HOST_NETWORK = "network of the host"


class Kind(StrEnum):
    """How the values of a window become one figure: weighted mean of rates, mean of gauges, growth of totals."""

    RATE = "rate"
    GAUGE = "gauge"
    TOTAL = "total"


@dataclass(frozen=True)
class Grain:
    """Counter (a column of the trace) whose steps limit a quantity. `worth`: of one unit of it per second."""

    table: str
    column: str
    worth: Callable[[Trace], float]


@dataclass(frozen=True)
class Quantity:
    """One figure that a tool prints."""

    name: str
    shown: str
    """Name that the tool prints."""
    value: pl.Expr = field(compare=False)
    """Formula over a reading and, for a rate, the one before; null where the tool would print nothing."""
    says: str
    """The formula in one line."""
    cites: str
    """Source code of the tool: repository, file, function."""
    unit: str
    measure: Measure
    kind: Kind
    readings: str
    """Counters that the formula uses: a name in `readings.READINGS`."""
    step: float
    """Smallest difference that the tool prints, in `unit`."""
    paged: float = 0.0
    """Worth of one byte, in `unit`, if the kernel counts in whole pages; 0 otherwise."""
    one: float = 0.0
    """Worth of one more event in a sample of one second."""
    grain: Grain | None = None
    cores: Callable[[Trace], float] | None = None
    """Factor that converts to percent of one CPU; `None` if the quantity is no CPU time."""
    lags: Callable[[Trace, pl.DataFrame], float] | None = None
    """How far the kernel's counts may lag behind the true value, in `unit`; `None`: not at all."""
    looking_back: Formula | None = None
    """Formula for a whole series, if the tool looks back further than one reading."""
    weight: pl.Expr | None = field(default=None, compare=False)
    """Divisor of the tool, if it is not the time between readings; means over samples are weighted by it."""
    weighted_by: str | None = None
    """Rate of the tool over whose events this quantity is the mean."""
    clock_s: Callable[[Trace], float] = lambda _: 0.0
    """Largest difference in seconds of the tool's divisor from the elapsed time."""

    def formula(self, readings: pl.DataFrame) -> pl.DataFrame:
        """Samples that the tool would print of these readings."""
        return self.of_neighbours(readings) if self.looking_back is None else self.looking_back(readings)

    def of_neighbours(self, readings: pl.DataFrame) -> pl.DataFrame:
        """Samples of a rate between neighbouring readings, of a level or a total at each."""
        return (over_intervals if self.kind is Kind.RATE else at_readings)(readings, self.value)

    def moves_by(self, trace: Trace) -> float:
        """Smallest difference between two figures on this machine, in `unit`."""
        return max(self.step, self.paged * trace.page_bytes)

    def resolution(self, trace: Trace, interval_s: float, subject: str = "") -> float:
        """Smallest difference that two samples `interval_s` apart can show, in `unit`.

        A mean over all CPUs (subject `all`) is finer than the figure of one CPU by the number of CPUs.
        """
        quantum = None if self.grain is None else trace.quantum(self.grain.table, self.grain.column)
        moved = 0.0 if quantum is None or self.grain is None else quantum * self.grain.worth(trace) / interval_s
        if self.readings == "host cpu" and subject == "all":
            moved /= trace.cpus
        return max(self.moves_by(trace), self.one / interval_s, moved)


@dataclass(frozen=True)
class View:
    """A tool: what it computes by its source code, and what it cannot see."""

    tool: str
    title: str
    cadence: str
    """How often the tool samples, and the effects of that."""
    quantities: tuple[Quantity, ...]
    blind_to: tuple[str, ...]
