"""What some hosts do without starting a program: read their clocks, and measure the network between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class ClockReading:
    """A host's clocks at one moment, in nanoseconds. `wall_ns`: since the epoch."""

    monotonic_ns: int
    wall_ns: int


class NetworkProbe(Protocol):
    """Sends and answers UDP and TCP probes, answered as in crates/agent/src/sounding.rs."""

    def echo(self, address: str) -> AbstractContextManager[int]:
        """Answer at one of the host's own addresses inside the context; gives the port.

        Raises `RunFailed` if the address is not the host's own.
        """
        ...

    def sound(self, address: str, port: int) -> Mapping[str, Any]:
        """Measure round trips to an answering host: `exchanges`, `lost`, `own_ahead_ns`."""
        ...

    def fill(self, address: str, port: int, seconds: float) -> Mapping[str, float]:
        """Measure the rate of one connection, this long in each direction: `to_bytes_per_s`, `from_bytes_per_s`."""
        ...
