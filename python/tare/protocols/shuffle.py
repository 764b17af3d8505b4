"""A random order that is reproducible across releases of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def shuffled(arms: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    """Return the arms in a uniformly random order.

    Uses raw bits, since NumPy keeps a bit generator's stream from release to release but not that of
    `Generator.permutation` (NEP 19).
    """
    keys = rng.bit_generator.random_raw(len(arms))
    return tuple(arms[n] for n in keys.argsort(kind="stable"))
