"""Estimates → terminal, HTML, Markdown, CSV, JSON. One exporter a file, all of them `render(report) -> str`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tare.report import csv_rows, findings_file, html_page, markdown, terminal
from tare.report.content import Report, build_report
from tare.report.write import write

__all__ = ["EXPORTERS", "Report", "build_report", "write"]

EXPORTERS: Mapping[str, Callable[[Report], str]] = {
    "terminal": terminal.render,
    "html": html_page.render,
    "md": markdown.render,
    "csv": csv_rows.render,
    "json": findings_file.render,
}
