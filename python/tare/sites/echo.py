"""What lies between two hosts, where they measure it themselves and no program is started for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SoundsWire(Protocol):
    """A host that answers and asks by UDP and TCP. The answers are those of crates/agent/src/sounding.rs."""

    def echo(self, address: str) -> AbstractContextManager[int]:
        """Answer at one of its own addresses while this lasts; the port. `RunFailed` where that is not its own."""
        ...

    def sound(self, address: str, port: int) -> Mapping[str, Any]:
        """Round trips to what answers there: `exchanges`, `lost`, `own_ahead_ns`."""
        ...

    def fill(self, address: str, port: int, seconds: float) -> Mapping[str, float]:
        """What one connection carries, each way for so long: `to_bytes_per_s`, `from_bytes_per_s`."""
        ...
