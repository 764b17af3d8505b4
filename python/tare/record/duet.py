"""What a record keeps of a duet: when both arms drove load, when their CPU sets were swapped, and both halves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final


@final
@dataclass(frozen=True, slots=True)
class SwapHalf:
    """One half, in which both arms were measured on unchanging CPUs."""

    windows: int
    """How many windows count."""
    throughput_per_s: float
    """Their mean. Arms are compared by the geometric mean of both halves."""


@final
@dataclass(frozen=True, slots=True)
class DuetTimes:
    """A run beside another arm. Moments are seconds on the monotonic clock of the machine that tare runs on.

    A failed attempt has only `partner` and `cpus`.
    """

    partner: str
    """`run_id` of the other run of the block."""
    cpus: tuple[str, ...] = ()
    """CPU lists of SUT and client in the first and in the second half."""
    started_s: float | None = None
    """Start of this run's client process."""
    began_by: Literal["generator", "end"] | None = None
    """How the start of its load is known, as in `usage.driven`. Absent in older records, where windows were assumed
    to begin with `started_s`."""
    began_from_s: float | None = None
    """Earliest start of its load: 0.15 s before its own report, or `started_s`."""
    began_until_s: float | None = None
    """Latest start of its load: 0.15 s after its own report, or `duration_s` before its end."""
    both_from_s: float | None = None
    """Start of the time in which both surely sent load; in older records, in which both processes existed."""
    swap_began_s: float | None = None
    """When the swap of the CPU sets began."""
    swap_ended_s: float | None = None
    """When it ended."""
    both_until_s: float | None = None
    """End of the time in which both surely sent load."""
    windows_dropped: int | None = None
    """Windows in neither half."""
    halves: tuple[SwapHalf, ...] | None = None
    """The two halves ([which windows count](../concepts/protocols.md#duet-two-arms-at-once))."""

    @property
    def rates(self) -> tuple[float, float] | None:
        """Operations a second in both halves; `None` without a result."""
        if not self.halves:
            return None
        first, second = self.halves
        return first.throughput_per_s, second.throughput_per_s
