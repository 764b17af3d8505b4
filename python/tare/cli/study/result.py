"""Final output of `tare run`."""

from __future__ import annotations

import sys

from rich.console import Console

from tare.calibrate.quote import quote_for
from tare.cli.study.format import Format
from tare.report import EXPORTERS, terminal
from tare.report.content import build_report, readable
from tare.report.rows.quantities import with_quantities
from tare.run.ending import Ending
from tare.sites.layout import default_layout
from tare.store import Store


def show_result(store: Store, output: Format, ending: Ending | None) -> bool:
    """Print the overhead table, or the findings as JSON. Returns whether the study is valid."""
    records = store.records()
    calibration = quote_for(records, default_layout().calibration)
    study, people = store.plan.study, output is Format.TEXT
    report = build_report(study, records, len(store.plan.runs), ending, calibration, for_people=people)
    report = with_quantities(report, readable(study, records, for_people=people)[1], store.raw)
    valid = not report.analysis.invalid
    if output is Format.JSON:
        text = EXPORTERS["json"](report)
    else:
        from tare.report.in_full import with_explanation  # polars is slow to import

        report = with_explanation(report, store, readable(study, records)[1])
        console = Console()
        text = terminal.render(report, width=console.width, colour=console.is_terminal and not console.no_color)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    return valid
