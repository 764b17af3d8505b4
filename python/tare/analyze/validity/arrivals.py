"""Whether the operations that were asked for a second came."""

from __future__ import annotations

from collections.abc import Iterator

from tare.analyze.numbers import number_at
from tare.analyze.validity.evidence import Alarm, Evidence, ids, share

SHORT = 0.01
"""Of the operations asked for: half of the target width of an overhead."""


def under_delivery(evidence: Evidence) -> Iterator[Alarm]:
    """A run delivered over 1 % fewer operations a second than its target asks for."""
    for arm in evidence.arms:
        told = [(run, number_at(run.measurement, ("details", "delivered_share"))) for run in evidence.good(arm)]
        short = [(run, part) for run, part in told if part is not None and part < 1 - SHORT]
        if short:
            least = min(part for _, part in short)
            yield Alarm(
                "under-delivery",
                arm,
                f"the generator delivered {share(least)} of the operations that its target asks for",
                ids([run for run, _ in short]),
                "take a lower target or more threads: at this load arms are compared at different rates",
            )
