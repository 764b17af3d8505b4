"""How a study's source comes to its figures, and what it reports by definitions of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from tare.study.values import MOST, Count, Seconds, Strict

PublishedBy = Literal["relative-change-of-averages", "min-max-mean"]
"""How a publication comes to its figures; `min-max-mean`: these of its repetitions, with the standard deviation."""

QuantityName = Literal["e_ovh", "cpu_ovh", "io_ovh_r", "io_ovh_w"]


class PublishedRange(Strict):
    """Between which values a source found a quantity, as fractions: 0.1 is 10 %. `when`: under which condition."""

    low: float = Field(ge=0, le=MOST)
    high: float = Field(ge=0, le=MOST)
    when: str | None = None
    where: str

    @model_validator(mode="after")
    def _in_order(self) -> PublishedRange:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Quantities(Strict):
    """What a source reports by definitions of its own, told beside tare's estimates.

    `wanted`: quantity → the published ranges. A tool's view is of one sample each `every_s` seconds, the first and
    the last `trim` of each run dropped.
    """

    every_s: Seconds = Field(default=1.0, gt=0)
    trim: Count = Field(default=5, ge=0)
    wanted: Mapping[QuantityName, tuple[PublishedRange, ...]] = Field(min_length=1)
