"""Estimates → sections → terminal, HTML, Markdown, CSV, JSON: one module with `render(report)` each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tare.record.run_record import RunRecord
    from tare.report.content import Report
    from tare.store import Store


@dataclass(frozen=True)
class Exporter:
    """A format. Its module is imported when first used: charts and frames are slow to import."""

    module: str
    reads: Literal["records", "stacks", "everything"] = "records"
    """What it shows of a store: records, with the samples of stacks, or with all raw files."""
    for_people: bool = False
    """Whether names of emulated arms are marked; files for programs have a key for that."""

    def __call__(self, report: Report, **options: Any) -> str:
        """Return the report as text. `options`: those of the module's `render`."""
        return str(import_module(f"tare.report.{self.module}").render(report, **options))

    def complete(
        self, report: Report, store: Store, records: Sequence[RunRecord], chosen: Sequence[str] = ()
    ) -> Report:
        """Add what the format shows of the raw files. `chosen`: ids of the runs to show first."""
        from tare.report.source_quantities import with_quantities

        report = with_quantities(report, records, store.raw)
        if self.reads == "records":
            return report
        from tare.report.in_full import in_full, with_explanation  # polars is slow to import

        if self.reads == "stacks":
            return with_explanation(report, store, records)
        return in_full(report, store, records, chosen)


EXPORTERS: Mapping[str, Exporter] = {
    "terminal": Exporter("terminal", "stacks", for_people=True),
    "html": Exporter("html_page", "everything", for_people=True),
    "md": Exporter("markdown.markdown", "everything", for_people=True),
    "csv": Exporter("csv_rows"),
    "json": Exporter("findings_file"),
}
