"""A column for each factor of a study."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tare.study.model import Study

PREFIX = "factor_"
"""So that a factor may be called `n` or `metric` and hides no other column."""


def factor_columns(study: Study) -> dict[str, type[pl.DataType]]:
    """Names and types of the columns."""
    return {f"{PREFIX}{name}": pl.String for name in study.factors}


def factor_cells(study: Study, levels: Mapping[str, str]) -> list[str | None]:
    """The level of each factor, `None` where it has none."""
    return [levels.get(name) for name in study.factors]
