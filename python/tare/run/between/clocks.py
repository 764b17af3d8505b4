"""The offset between two hosts' clocks, from exchanges with four timestamps each. Pure.

In an exchange, the request leaves at `sent` and the reply returns at `returned` by one clock; by the other clock,
the request arrives at `received` and the reply leaves at `replied`. However long the two ways took, the offset is
within half a round trip of its value for equal ways (RFC 5905, section 8), so the fastest exchange bounds it best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tare.errors import RunFailed
from tare.record.between import Offset
from tare.run.clock import Clock

MOST_DRIFT = 600e-6
"""Seconds a second by which two undisturbed clocks may diverge: NTP slews by 500 ppm at most (adjtimex(2)), and two
crystals differ by some tens of ppm."""
MOST_BOUND_S = 0.05
"""A larger uncertainty would misplace the windows of a run by half a sample of its trace or more."""

MOST_STEP_S = 0.005
"""NTP slews both clocks of a host alike, so wall minus monotonic clock changes in steps only (clock_gettime(2));
this allows for the error of reading."""


@dataclass(frozen=True)
class Exchange:
    """Timestamps in seconds. `sent`, `returned`: of the asking host; `received`, `replied`: of the answering."""

    sent: float
    received: float
    replied: float
    returned: float

    @property
    def round_trip_s(self) -> float:
        """Travel time of both ways, without the time in the answering host."""
        return (self.returned - self.sent) - (self.replied - self.received)

    @property
    def offset_s(self) -> float:
        """Answering clock minus asking clock, for equal ways."""
        return ((self.received - self.sent) + (self.replied - self.returned)) / 2


def offset_of(exchanges: Sequence[Exchange]) -> Offset:
    """Return the offset from the exchange with the shortest round trip. Raises `ValueError` if there is none.

    The clocks tick in nanoseconds and may be read out of step: a negative round trip counts as zero.
    """
    best = min(exchanges, key=lambda each: each.round_trip_s)
    return Offset(best.offset_s, max(0.0, best.round_trip_s) / 2, (best.sent + best.returned) / 2)


def interpolated(before: Offset, after: Offset, at_s: float) -> float:
    """Interpolate the offset at a moment between two measurements (by the asking clock), for a constant drift."""
    lasted = after.at_s - before.at_s
    if lasted <= 0:
        return after.offset_s
    share = min(1.0, max(0.0, (at_s - before.at_s) / lasted))
    return before.offset_s + share * (after.offset_s - before.offset_s)


def disagreement(before: Offset, after: Offset) -> str | None:
    """Return why the clocks cannot be aligned over a run, as a clause; `None` if they can."""
    worst = max(before.bound_s, after.bound_s)
    if worst > MOST_BOUND_S:
        return f"their offset is uncertain by {1e3 * worst:.1f} ms, and {1e3 * MOST_BOUND_S:.0f} ms is the limit"
    moved, most = abs(after.offset_s - before.offset_s), _most_change_s(before, after)
    if moved > most:
        lasted = after.at_s - before.at_s
        explained = f"and {1e3 * most:.3f} ms can be explained"
        return f"their offset changed by {1e3 * moved:.3f} ms in {lasted:.0f} s, {explained}"
    return None


def _most_change_s(one: Offset, later: Offset) -> float:
    """Return by how much two offsets may differ if no clock was stepped."""
    return one.bound_s + later.bound_s + MOST_DRIFT * abs(later.at_s - one.at_s)


@dataclass
class SiteClock:
    """Clocks of a host. `ahead_s` and `wall_ahead_s`: seconds by which they are ahead of this machine's clocks.

    The offsets are set before each run, never during a run.
    """

    own: Clock
    ahead_s: float = 0.0
    wall_ahead_s: float = 0.0
    bound_s: float = 0.0

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self.own.wall() + self.wall_ahead_s

    def monotonic(self) -> float:
        """The host's CLOCK_MONOTONIC."""
        return self.own.monotonic() + self.ahead_s

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.own.sleep(seconds)


def must_agree(before: Offset, after: Offset, names: tuple[str, str]) -> None:
    """Raise `RunFailed` if a step or a drift makes the run's times unusable."""
    if (why := disagreement(before, after)) is not None:
        raise RunFailed(
            f"the clocks of {names[0]} and {names[1]} cannot be aligned: {why}",
            hint="synchronise both with one NTP server (chrony), and do not step a clock during a study",
        )


def must_not_step(before_s: float, after_s: float, name: str) -> None:
    """Raise `RunFailed` if a host's wall clock was set; arguments: wall minus monotonic clock, before and after.

    Many generators write the wall clock into their logs, and their windows are located by it.
    """
    moved = after_s - before_s
    if abs(moved) > MOST_STEP_S:
        way = "forward" if moved > 0 else "back"
        raise RunFailed(
            f"the wall clock of {name} was set {way} by {abs(moved):.3f} s in the run",
            hint="let chrony slew it (no makestep after the start), and do not set a clock during a study",
        )
