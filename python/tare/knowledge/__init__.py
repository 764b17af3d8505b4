"""Findings, published and measured, as sourced claims; what they say of a benchmark that is only planned.

`load_claims` reads claims, `pool` sums up comparable ones, `advise` answers whether a benchmark may be dockerized.
"""

from __future__ import annotations

from tare.knowledge.claim import Claim, ClaimFile, load_claim, load_claims

__all__ = ["Claim", "ClaimFile", "load_claim", "load_claims"]
