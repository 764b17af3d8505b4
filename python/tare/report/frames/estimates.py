"""Every finding of a study, one row each: the conclusions of `tare report` as a frame."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tare.analyze import Analysis, Finding
from tare.analyze.estimate import OverSites
from tare.protocols.registry import PROTOCOLS, as_published
from tare.report.words.verdicts import short
from tare.study.model import Study

PREFIX = "factor_"
"""Prefix of factor columns, so that a factor called `n` or `metric` hides no other column."""


def factor_columns(study: Study) -> dict[str, type[pl.DataType]]:
    """Return the names and types of the factor columns."""
    return {f"{PREFIX}{name}": pl.String for name in study.factors}


def factor_cells(study: Study, levels: Mapping[str, str]) -> list[str | None]:
    """Return the level of each factor, `None` if it has none."""
    return [levels.get(name) for name in study.factors]


COLUMNS = {
    "study": pl.String, "scale": pl.String, "arm": pl.String, "baseline": pl.String, "metric": pl.String,
    "estimator": pl.String, "point": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n": pl.Int64,
    "confidence": pl.Float64, "why": pl.String, "published": pl.Float64, "resolution": pl.Float64,
    "below_resolution": pl.Boolean, "levels": pl.String, "control": pl.Boolean, "valid": pl.Boolean,
    "stratum": pl.String, "as_published": pl.Float64, "margin": pl.Float64, "verdict": pl.String,
    "p_zero": pl.Float64, "p_outside": pl.Float64, "family": pl.Int64, "different_operating_point": pl.Boolean,
    "published_baseline": pl.Boolean, "emulated": pl.Boolean, "sites": pl.Int64, "between_sites": pl.Float64,
    "next_low": pl.Float64, "next_high": pl.Float64,
}  # fmt: skip
"""Columns beside those of the factors; keys as in the JSON findings, docs/reference/findings.md."""


def estimates(study: Study, analysis: Analysis) -> pl.DataFrame:
    """Return every arm but the baseline in every metric over all blocks, then the findings of single strata."""
    strata = (finding for stratum in analysis.strata for finding in stratum.findings)
    rows = [_row(study, analysis, finding) for finding in (*analysis.findings, *strata)]
    return pl.DataFrame(rows, schema={**COLUMNS, **factor_columns(study)}, orient="row")


def _row(study: Study, analysis: Analysis, finding: Finding) -> list[object]:
    estimate, judgement = finding.estimate, finding.judgement
    return [
        finding.study,
        study.scale,
        finding.arm,
        finding.baseline,
        finding.metric,
        estimate.method,
        estimate.point,
        estimate.low,
        estimate.high,
        estimate.n,
        estimate.confidence,
        estimate.why,
        finding.published,
        finding.resolution,
        finding.below_resolution,
        _levels(finding.levels),
        finding.control,
        not analysis.invalid,
        _levels(finding.stratum),
        None if finding.as_published is None else finding.as_published.point,
        judgement.margin,
        short(finding),
        judgement.p_zero,
        judgement.p_outside,
        judgement.family,
        PROTOCOLS[study.protocol.name].at_once,
        as_published(study),
        finding.mark is not None,
        *_over_sites(finding.over_sites),
        *factor_cells(study, {**finding.levels, **finding.stratum}),
    ]


def _over_sites(over: OverSites | None) -> list[object]:
    if over is None:
        return [None, None, None, None]
    return [len(over.sites), over.between, over.next_low, over.next_high]


def _levels(levels: Mapping[str, str]) -> str:
    return ";".join(f"{factor}={level}" for factor, level in levels.items())
