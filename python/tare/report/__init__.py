"""Estimates → terminal, HTML, Markdown, CSV, JSON. One exporter a file, all of them `render(report) -> str`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tare.report import csv_rows, findings_file, markdown, terminal
from tare.report.content import Report, build_report
from tare.report.write import refuse_place, write

__all__ = ["EXPORTERS", "Report", "build_report", "refuse_place", "write"]


def _html(report: Report) -> str:
    """The charting library takes a third of a second to import, which only this exporter need pay."""
    from tare.report import html_page

    return html_page.render(report)


EXPORTERS: Mapping[str, Callable[[Report], str]] = {
    "terminal": terminal.render,
    "html": _html,
    "md": markdown.render,
    "csv": csv_rows.render,
    "json": findings_file.render,
}
