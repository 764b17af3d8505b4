"""How far predictions from unit costs are off, learned from stores whose measurements they were held against.

The residual of an outcome, measured less predicted, is taken as normal around 0. Its variance is that of the unit
costs, of the measurement, and of the model itself: base² + (share of the prediction)². Both are posterior means
over a grid, with log-normal priors around what is assumed without outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from tare.calibrate.archive import write_whole
from tare.errors import StoreError
from tare.sites.layout import Layout
from tare.study.values import Strict

FORMAT: Literal[1] = 1
RESULT = "model.json"
FEWEST_OUTCOMES = 5
"""Below which what is assumed stands."""
_BASE, _SHARE, _LOG_SD = 0.05, 0.1, 1.0
_GRID = np.exp(np.linspace(-3.0, 3.0, 61))


class ModelError(Strict):
    """Standard deviation of the model's own error: `base`, and `share` of the predicted log ratio.

    `outcomes`, `stores`: from how many it was learned; 0: it is assumed.
    """

    format: Literal[1] = FORMAT
    base: float
    share: float
    outcomes: int = 0
    stores: int = 0

    def sd(self, log_ratio: float) -> float:
        """Of a prediction."""
        return math.hypot(self.base, self.share * log_ratio)


ASSUMED = ModelError(base=_BASE, share=0.0)
"""Until outcomes tell."""


@dataclass(frozen=True)
class Outcome:
    """A prediction and what was measured, log ratios. `store`: digest of the plan that it is from."""

    store: str
    study: str
    arm: str
    predicted: float
    of_costs: float
    measured: float
    measured_se: float


def learned_error(outcomes: Sequence[Outcome]) -> ModelError:
    """What these outcomes make of the model's error; `ASSUMED` where there are fewer than `FEWEST_OUTCOMES`."""
    if len(outcomes) < FEWEST_OUTCOMES:
        return ASSUMED
    base, share = _BASE * _GRID, _SHARE * _GRID
    residual = np.array([each.measured - each.predicted for each in outcomes])
    own = np.array([each.of_costs**2 + each.measured_se**2 for each in outcomes])
    size = np.array([each.predicted for each in outcomes])
    variance = own + base[:, None, None] ** 2 + (share[None, :, None] * size) ** 2
    log_posterior = -0.5 * (np.log(variance) + residual**2 / variance).sum(axis=2)
    log_posterior -= (np.log(_GRID)[:, None] ** 2 + np.log(_GRID)[None, :] ** 2) / (2 * _LOG_SD**2)
    weight = np.exp(log_posterior - log_posterior.max())
    weight /= weight.sum()
    return ModelError(
        base=math.sqrt(float((weight.sum(axis=1) * base**2).sum())),
        share=math.sqrt(float((weight.sum(axis=0) * share**2).sum())),
        outcomes=len(outcomes),
        stores=len({each.store for each in outcomes}),
    )


def keep_error(layout: Layout, error: ModelError) -> Path:
    """Write it beside the unit costs, in place of what was there."""
    layout.unit_costs.mkdir(parents=True, exist_ok=True)
    path = layout.unit_costs / RESULT
    write_whole(path, error.model_dump_json(indent=1) + "\n")
    return path


def read_error(layout: Layout) -> ModelError:
    """What was kept, else what is assumed. Raises `StoreError` for a file that is damaged."""
    path = layout.unit_costs / RESULT
    try:
        return ModelError.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ASSUMED
    except (OSError, ValidationError) as error:
        raise StoreError(
            f"{path} cannot be read", hint="remove it and run `tare knowledge predicted` again"
        ) from error
