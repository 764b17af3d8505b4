"""Mean and mean square error of repeated measurements, as in casalicchio-2017."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def mean_square_error(values: Sequence[float]) -> float | None:
    """The mean of (x_i - mean)² over N values, in the square of their unit; `None` without values.

    Casalicchio & Perciballi, "Measuring Docker performance: what a mess!!!", ICPE 2017 companion. It tells
    how far single repetitions lie from their mean, not how well the mean is known.
    """
    return float(np.var(values)) if len(values) else None
