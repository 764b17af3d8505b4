"""Which samples of a monitor count: those of the measure phase, without the ones that the study drops."""

from __future__ import annotations

import polars as pl

from tare.run.span import Span
from tare.study.model import MonitorSpec


def marked_table(samples: pl.DataFrame, spec: MonitorSpec, phase: Span | None) -> pl.DataFrame:
    """With a column `kept`: true for samples that lie within the phase whole, but those that the study drops.

    Without a phase nothing is kept. Dropped is by when samples end; of those that end together, as rate() over a
    range and the reading that it ends with, the shortest tells which are whole.
    """
    if phase is None:
        return samples.with_columns(pl.lit(value=False).alias("kept"))
    lasting = pl.col("from_ns").filter(pl.col("from_ns") < pl.col("to_ns"))
    moments = samples.group_by("to_ns").agg(pl.coalesce(lasting.max(), pl.col("from_ns").min())).sort("to_ns")
    began, ended = round(phase.began_s * 1e9), round(phase.ended_s * 1e9)
    whole = moments.filter((pl.col("from_ns") >= began) & (pl.col("to_ns") <= ended))["to_ns"]
    last = len(whole) - spec.drop_last
    kept = whole[spec.drop_first : last] if last > spec.drop_first else whole.clear()
    within = (pl.col("from_ns") >= began) & pl.col("to_ns").is_in(kept.implode())
    return samples.with_columns(within.alias("kept"))
