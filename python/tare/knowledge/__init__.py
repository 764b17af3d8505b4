"""Findings, published and measured, as sourced claims, and what they say about a planned benchmark.

`load_claims` reads claims, `pool` summarises comparable ones, `advise` says whether a benchmark may be dockerized.
"""

from __future__ import annotations

from tare.knowledge.claim import Claim, ClaimFile, load_claim, load_claims

__all__ = ["Claim", "ClaimFile", "load_claim", "load_claims"]
