"""Logs of monitors beside results: the contract of their parsers. One file each; `registry` names them.

A parser gives what a log says of each interval. The first sample of a tool that begins with averages since boot is
left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

ALL = "all"
"""Subject of the CPU time of a whole machine."""
MODES: Mapping[str, str] = {
    "user": "user", "usr": "user", "us": "user", "nice": "nice", "system": "system", "sys": "system",
    "sy": "system", "iowait": "iowait", "wai": "iowait", "wa": "iowait", "irq": "irq", "hiq": "irq",
    "soft": "softirq", "siq": "softirq", "steal": "steal", "stl": "steal", "st": "steal", "idle": "idle",
    "idl": "idle", "id": "idle",
}  # fmt: skip
"""A tool's name of a mode of CPU time → the kernel's, of /proc/stat."""


@dataclass(frozen=True)
class Value:
    """One figure. `quantity`: a mode of CPU time in percent, a figure of a disk, or `cpu_percent` of `subject`."""

    quantity: str
    subject: str
    value: float


@dataclass(frozen=True)
class Sample:
    """What was measured in one interval. `at_s`: its end by the log's own clock, as if that were UTC; if known."""

    at_s: float | None
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Log:
    """A log. `is_utc`: whether its clock is known to be UTC; `cpus`: how many its machine has, if it says so."""

    samples: tuple[Sample, ...]
    is_utc: bool = False
    cpus: int | None = None


class MonitorLog(Protocol):
    """Contract of a parser of a monitor's logs. `title`: tool and forms."""

    title: ClassVar[str]

    def recognises(self, text: str) -> bool:
        """Whether the text is this tool's log."""
        ...

    def read(self, text: str) -> Log:
        """Read a log; what cannot be read is left out. Raises `ValueError` or `LookupError` for a damaged one."""
        ...


def number(text: str) -> float | None:
    """Parse a number with a point or a comma for decimals; `None` for another text."""
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if abs(value) < 1e15 else None
