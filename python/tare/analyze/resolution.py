"""What a histogram can tell apart."""

from __future__ import annotations

import math

_PRINTED = 1e-3
"""Generators print bucket bounds with few decimals, so neighbours may seem this much more than a bucket apart."""


def below_resolution(point: float | None, bucket: float | None) -> bool:
    """Whether a relative difference is no larger than one histogram bucket of relative width `bucket`.

    Two values in neighbouring buckets may differ by anything between nothing and two buckets, so a difference of
    exactly one is not claimed either.
    """
    if point is None or bucket is None:
        return False
    return abs(math.log1p(point)) <= math.log1p(bucket) * (1 + _PRINTED) + _PRINTED * bucket
