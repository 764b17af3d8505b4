"""What a view is: a tool, the quantities it prints, and how each follows from the kernel's counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from tare.store.trace import Trace

Formula = Callable[[pl.DataFrame], pl.DataFrame]
"""Readings (`subject`, `series`, `at_ns` and counters, sorted) → samples (`subject`, `series`, `from_ns`, `to_ns`,
`value`). Pure. A value is null where the tool would print nothing."""


class Measure(StrEnum):
    """The question that a quantity answers; quantities under one can be laid side by side."""

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
    """How values over a window become one figure: weighted mean of rates, mean of gauges, growth of totals."""

    RATE = "rate"
    GAUGE = "gauge"
    TOTAL = "total"


@dataclass(frozen=True)
class Grain:
    """The counter whose steps limit a quantity, a column of the trace; what one unit of it a second is worth."""

    table: str
    column: str
    worth: Callable[[Trace], float]


@dataclass(frozen=True)
class Quantity:
    """One figure that a tool prints."""

    name: str
    shown: str
    """What the tool calls it."""
    unit: str
    measure: Measure
    kind: Kind
    readings: str
    """Which counters it is made of: a name in `readings.READINGS`."""
    formula: Formula
    says: str
    """The formula in one line."""
    cites: str
    """The tool's own source: repository, file, function."""
    step: float
    """The smallest difference that the tool prints, in `unit`."""
    paged: float = 0.0
    """What a byte is worth of what the kernel counts in whole pages; 0: it does not."""
    one: float = 0.0
    """What one more event is worth where a sample lasts a second."""
    grain: Grain | None = None
    cores: Callable[[Trace], float] | None = None
    """What to multiply with to have percent of one CPU; `None` for what is no CPU time."""
    lags: Callable[[Trace, pl.DataFrame], float] | None = None
    """How far the kernel may let what these readings count lag behind what is so, in `unit`; `None`: not at all."""
    between: Formula | None = None
    """The same over exactly two readings, where `formula` looks further back than one."""
    weight: Formula | None = None
    """By what the tool divides, where that is not the time between readings: its samples' means are weighted so."""
    weighted_by: str | None = None
    """Another quantity of the tool, a rate, of whose events this is the mean."""
    clock_s: Callable[[Trace], float] = lambda _: 0.0
    """How far that by which the tool divides may be off the time that passed."""

    def moves_by(self, trace: Trace) -> float:
        """The smallest difference between two figures of this machine, in `unit`."""
        return max(self.step, self.paged * trace.page_bytes)

    def resolution(self, trace: Trace, interval_s: float, subject: str = "") -> float:
        """The smallest difference that two samples `interval_s` apart can show, in `unit`.

        A mean over all CPUs (subject `all`) is finer than one CPU by their number.
        """
        quantum = None if self.grain is None else trace.quantum(self.grain.table, self.grain.column)
        moved = 0.0 if quantum is None or self.grain is None else quantum * self.grain.worth(trace) / interval_s
        if self.readings == "host cpu" and subject == "all":
            moved /= trace.cpus
        return max(self.moves_by(trace), self.one / interval_s, moved)


@dataclass(frozen=True)
class View:
    """A tool as its source says it computes, and what it cannot see."""

    tool: str
    title: str
    cadence: str
    """How often it samples, and what that does."""
    quantities: tuple[Quantity, ...]
    blind_to: tuple[str, ...]
