"""Error of predictions from unit costs, learned from stores with predictions and measurements.

The measurement of an arm is assumed to be normal around its prediction times `slope`. The variance is the sum of
those of the unit costs, of the measurement, and of the model itself: base² + (share of the prediction)². Unit costs
are measured separately and at full load; a slope below 1 means that a database's request costs less than their sum.
All three are posterior means over a grid, with log-normal priors around the values assumed without outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from tare.calibrate.archive import write_whole
from tare.errors import StoreError
from tare.sites.layout import Layout, make_directory
from tare.study.values import Strict

FORMAT: Literal[1] = 1
RESULT = "model.json"
THROUGHPUT, CPU, LATENCY = "throughput", "cpu_per_operation", "latency_mean"
"""Predicted metrics: the first for closed loops, the others for open loops at a rate."""
FEWEST_OUTCOMES = 5
"""Fewest outcomes to learn from; with fewer, the assumed values stay."""
_BASE, _SHARE, _LOG_SD = 0.05, 0.1, 1.0
_GRID = np.exp(np.linspace(-3.0, 3.0, 31))
_SLOPE_LOG_SD = 0.3
_SLOPES = np.exp(np.linspace(-3 * _SLOPE_LOG_SD, 3 * _SLOPE_LOG_SD, 121))
NINETY = 1.6448536269514722
"""Standard deviations on either side of a 90 % interval."""


class ModelError(Strict):
    """Standard deviation of the model's own error: `base`, and `share` of the predicted log ratio.

    `slope`: factor for a predicted log ratio, with the standard deviation `slope_sd`. `outcomes`, `stores`: how
    many these were learned from; 0: they are assumed. All fields are for throughput; `others`: for the other
    metrics.
    """

    format: Literal[1] = FORMAT
    base: float
    share: float
    slope: float = 1.0
    slope_sd: float = 0.0
    outcomes: int = 0
    stores: int = 0
    others: Mapping[str, ModelError] = {}

    def of(self, metric: str) -> ModelError:
        """Error for one metric; the assumed one if nothing was learned about it."""
        return self if metric == THROUGHPUT else self.others.get(metric, ASSUMED)

    def corrected(self, log_ratio: float) -> float:
        """Prediction from unit costs, corrected by past outcomes."""
        return self.slope * log_ratio

    def half(self, log_ratio: float, of_costs: float = 0.0) -> float:
        """Half of the 90 % interval of a corrected prediction, for the arguments of `parts`."""
        return NINETY * self.sd(log_ratio, of_costs)

    def sd(self, log_ratio: float, of_costs: float = 0.0) -> float:
        """Standard deviation of a corrected prediction, for the arguments of `parts`."""
        return math.hypot(*self.parts(log_ratio, of_costs).values())

    def parts(self, log_ratio: float, of_costs: float) -> Mapping[str, float]:
        """Source → its standard deviation; their squares add up to that of `sd`.

        `log_ratio`: the uncorrected prediction; `of_costs`: standard deviation from the unit costs alone.
        """
        return {
            "unit costs": self.slope * of_costs,
            "slope": self.slope_sd * log_ratio,
            "model, base": self.base,
            "model, share": self.share * log_ratio,
        }


ASSUMED = ModelError(base=_BASE, share=0.0)
"""Used until there are outcomes."""


_EARLIER = "reach"
"""Field of a model with heavier tails, whose scale was no standard deviation."""


@dataclass(frozen=True)
class Outcome:
    """A prediction from unit costs alone, and the measurement: log ratios. `store`: digest of its plan.

    `dropped`: blocks without a latency, see `Kept`.
    """

    store: str
    study: str
    arm: str
    predicted: float
    of_costs: float
    measured: float
    measured_se: float
    metric: str = THROUGHPUT
    dropped: int = 0


def learned_errors(outcomes: Sequence[Outcome]) -> ModelError:
    """Learn the model's error from these outcomes, metric by metric."""
    by_metric: dict[str, list[Outcome]] = {}
    for each in outcomes:
        by_metric.setdefault(each.metric, []).append(each)
    learned = {metric: learned_error(each) for metric, each in by_metric.items()}
    first = learned.pop(THROUGHPUT, ASSUMED)
    return first.model_copy(update={"others": learned}) if learned else first


def learned_error(outcomes: Sequence[Outcome]) -> ModelError:
    """Learn from outcomes in one metric; return `ASSUMED` for fewer than `FEWEST_OUTCOMES`."""
    if len(outcomes) < FEWEST_OUTCOMES:
        return ASSUMED
    base, share = _BASE * _GRID, _SHARE * _GRID
    measured = np.array([each.measured for each in outcomes])
    raw = np.array([each.predicted for each in outcomes])
    of_costs = np.array([each.of_costs for each in outcomes])
    se = np.array([each.measured_se for each in outcomes])
    # Axes: base, share, slope, outcome.
    residual = measured - _SLOPES[:, None] * raw
    known = se**2 + (_SLOPES[:, None] * of_costs) ** 2
    own = base[:, None, None, None] ** 2 + (share[None, :, None, None] * raw) ** 2
    variance = known[None, None] + own
    log_posterior = -0.5 * (np.log(variance) + residual**2 / variance).sum(axis=3)
    log_posterior -= (np.log(_GRID)[:, None, None] ** 2 + np.log(_GRID)[None, :, None] ** 2) / (2 * _LOG_SD**2)
    log_posterior -= np.log(_SLOPES) ** 2 / (2 * _SLOPE_LOG_SD**2)
    weight = np.exp(log_posterior - log_posterior.max())
    weight /= weight.sum()
    of_slope = weight.sum(axis=(0, 1))
    slope = float((of_slope * _SLOPES).sum())
    return ModelError(
        base=math.sqrt(float((weight.sum(axis=(1, 2)) * base**2).sum())),
        share=math.sqrt(float((weight.sum(axis=(0, 2)) * share**2).sum())),
        slope=slope,
        slope_sd=math.sqrt(float((of_slope * (_SLOPES - slope) ** 2).sum())),
        outcomes=len(outcomes),
        stores=len({each.store for each in outcomes}),
    )


class OfEarlierTare(StoreError):
    """The stored error is of a model that tare had before; the assumed one is to be used."""


def keep_error(layout: Layout, error: ModelError) -> Path:
    """Write it beside the unit costs, and replace an earlier one."""
    make_directory(layout.unit_costs)
    path = layout.unit_costs / RESULT
    write_whole(path, error.model_dump_json(indent=1) + "\n")
    return path


def read_error(layout: Layout) -> ModelError:
    """Read the stored error, else return the assumed one.

    Raises `StoreError` for a damaged file, and `OfEarlierTare` for one of a model that tare had before.
    """
    path = layout.unit_costs / RESULT
    try:
        return ModelError.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ASSUMED
    except (OSError, ValidationError) as error:
        if isinstance(error, ValidationError) and _is_of_earlier(error):
            raise OfEarlierTare(
                f"{path} is of an earlier tare, which assumed other errors, and is not used",
                hint="`tare knowledge predicted STORE...` learns anew",
            ) from error
        raise StoreError(
            f"{path} cannot be read", hint="remove it and run `tare knowledge predicted` again"
        ) from error


def _is_of_earlier(error: ValidationError) -> bool:
    """Whether a field that earlier models had is all that is wrong."""
    return all(each["type"] == "extra_forbidden" and each["loc"][-1] == _EARLIER for each in error.errors())
