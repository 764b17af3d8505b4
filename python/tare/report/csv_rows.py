"""One row for each finding, for spreadsheets and data frames; columns as in the JSON findings."""

from __future__ import annotations

from tare.report.content import Report
from tare.report.frames.estimates import estimates
from tare.report.frames.files import as_csv


def render(report: Report) -> str:
    """Return the frame of `tare.open_store(…).estimates()` as CSV."""
    return as_csv(estimates(report.study, report.analysis))
