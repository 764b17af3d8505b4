"""Claims that publications made: what tests expect of them does not change as tare's own findings are added."""

from __future__ import annotations

from tare.knowledge.claim import ClaimFile, load_claims


def published_claims() -> tuple[ClaimFile, ...]:
    """All that come with tare, but for its own findings."""
    return tuple(known for known in load_claims() if known.claim.source.store is None)
