"""Estimates → terminal, HTML, Markdown, CSV, JSON. One file for each exporter: `render(report) -> str`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tare.report.content import Report


def _in(module: str) -> Callable[[Report], str]:
    """Return the exporter of a module, imported when first used: charts and frames are slow to import."""

    def render(report: Report) -> str:
        return str(import_module(f"tare.report.{module}").render(report))

    return render


EXPORTERS: Mapping[str, Callable[[Report], str]] = {
    "terminal": _in("terminal"),
    "html": _in("html_page"),
    "md": _in("markdown.markdown"),
    "csv": _in("csv_rows"),
    "json": _in("findings_file"),
}
