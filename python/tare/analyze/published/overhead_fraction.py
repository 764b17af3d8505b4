"""Overhead fractions as casalicchio-2017 defines them."""

from __future__ import annotations


def overhead_fraction(docker: float, native: float) -> float | None:
    """|docker - native| / native, `None` where `native` is not above 0.

    Casalicchio & Perciballi, "Measuring Docker performance: what a mess!!!", ICPE 2017 companion. The
    absolute value hides which of the two is the larger, and makes an overhead of mere noise: over repetitions its
    mean is above 0 for two equal systems.
    """
    return abs(docker - native) / native if native > 0 else None
