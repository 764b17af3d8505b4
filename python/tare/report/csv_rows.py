"""One row a finding, for spreadsheets and data frames; columns as in the JSON findings."""

from __future__ import annotations

import csv
import io

from tare.analyze import Finding
from tare.protocols import PROTOCOLS
from tare.report.content import Report
from tare.report.verdicts import short

COLUMNS = (
    "study", "scale", "arm", "baseline", "metric", "estimator", "point", "low", "high", "n", "confidence", "why",
    "published", "resolution", "below_resolution", "levels", "control", "valid", "stratum",
    "as_published", "margin", "verdict", "p_zero", "p_outside", "family", "different_operating_point",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins with one of these would be run by a spreadsheet."""


def render(report: Report) -> str:
    """Comma-separated rows with a heading; fractions with all their digits, an empty cell for what is not known."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    strata = (finding for stratum in report.analysis.strata for finding in stratum.findings)
    for finding in (*report.analysis.findings, *strata):
        rows.writerow([_cell(value) for value in _row(report, finding)])
    return out.getvalue()


def _row(report: Report, finding: Finding) -> list[object]:
    estimate = finding.estimate
    return [
        finding.study,
        report.study.scale,
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
        ";".join(f"{factor}={level}" for factor, level in finding.levels.items()),
        finding.control,
        not report.analysis.invalid,
        ";".join(f"{factor}={level}" for factor, level in finding.stratum.items()),
        None if finding.as_published is None else finding.as_published.point,
        finding.judgement.margin,
        short(finding),
        finding.judgement.p_zero,
        finding.judgement.p_outside,
        finding.judgement.family,
        PROTOCOLS[report.study.protocol.name].at_once,
    ]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return repr(value)
