"""All views of a trace as one tidy table of samples."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tare.analyze.views import VIEWS
from tare.analyze.views.model import View
from tare.analyze.views.readings import READINGS, every
from tare.store.trace import Trace

SCHEMA = {
    "tool": pl.String,
    "quantity": pl.String,
    "subject": pl.String,
    "from_ns": pl.Int64,
    "to_ns": pl.Int64,
    "value": pl.Float64,
}
"""Schema of samples, computed or real. Times are CLOCK_MONOTONIC; a gauge has `from_ns` = `to_ns`."""


def samples(trace: Trace, interval_s: float = 1.0, views: Mapping[str, View] = VIEWS) -> pl.DataFrame:
    """Compute what each tool would have printed, sampling every `interval_s` seconds: a table of `SCHEMA`.

    Subjects that the trace lacks have no rows; `value` is null where the tool would have printed nothing.
    """
    thinned = {name: every(read(trace), interval_s) for name, read in READINGS.items()}
    parts = [
        quantity.formula(thinned[quantity.readings]).select(
            pl.lit(view.tool).alias("tool"),
            pl.lit(quantity.name).alias("quantity"),
            "subject",
            "from_ns",
            "to_ns",
            pl.col("value").cast(pl.Float64),
        )
        for view in views.values()
        for quantity in view.quantities
        if not thinned[quantity.readings].is_empty()
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA)
