"""Log ratios of simulated studies, a study a row, a block a column.

Log ratios scatter by 2.7 % from block to block: a start of a server by 1.5 %, a run's windows by 1.2 %.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Logs = NDArray[np.float64]
RUN = math.hypot(0.015, 0.012)
SPREAD = math.sqrt(2) * RUN
DRIFT, MEMORY = 0.03, 0.9


def _log_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Logs:
    """Skewed to the right, of mean 0 and variance 1."""
    return (rng.lognormal(0, 1, shape) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)


def skewed_arm(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """Log ratios themselves are log-normal: the arm has a tail that the baseline has not. No effect is the same."""
    return _log_normal(rng, (studies, blocks)) * SPREAD


def drifting(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """The machine drifts from run to run (AR(1), 0.9, 3 %), in the mirrored order that was drawn."""
    drift = _autoregressive(rng, (studies, 2 * blocks), MEMORY, DRIFT).reshape(studies, blocks, 2)
    runs = drift + rng.normal(0, RUN, drift.shape)
    return np.asarray((runs[:, :, 0] - runs[:, :, 1]) * _first(rng, studies, blocks))


def _autoregressive(rng: np.random.Generator, shape: tuple[int, int], memory: float, spread: float) -> Logs:
    shocks = rng.normal(0, spread * math.sqrt(1 - memory**2), shape)
    shocks[:, 0] = rng.normal(0, spread, shape[0])
    return np.asarray(lfilter([1.0], [1.0, -memory], shocks, axis=1))


def _first(rng: np.random.Generator, studies: int, blocks: int) -> Logs:
    """1 where the arm runs first, -1 where the baseline does; drawn for each pair of blocks."""
    first = np.repeat(rng.integers(0, 2, (studies, blocks // 2)) * 2.0 - 1, 2, axis=1)
    first[:, 1::2] *= -1
    return np.asarray(first)


def units_of(logs: Logs) -> Logs:
    """Means of mirrored pairs of blocks."""
    return np.asarray(logs.reshape(len(logs), -1, 2).mean(axis=2))
