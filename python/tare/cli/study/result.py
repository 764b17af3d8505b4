"""Final output of `tare run`."""

from __future__ import annotations

import sys

from tare.calibrate.quote import quote_for
from tare.cli.own_terminal import own_terminal
from tare.cli.study.format import Format
from tare.report import EXPORTERS
from tare.report.content import build_report, readable
from tare.run.ending import Ending
from tare.sites.layout import default_layout
from tare.store import Store


def show_result(store: Store, output: Format, ending: Ending | None) -> bool:
    """Print the report, or the findings as JSON. Returns whether the study is valid."""
    records, study = store.records(), store.plan.study
    calibration = quote_for(records, default_layout().calibration)
    exporter = EXPORTERS["json" if output is Format.JSON else "terminal"]
    report = build_report(study, records, len(store.plan.runs), ending, calibration, for_people=exporter.for_people)
    report = exporter.complete(report, store, readable(study, records, for_people=exporter.for_people)[1])
    text = exporter(report) if output is Format.JSON else exporter(report, **own_terminal())
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="replace"))
    return not report.analysis.invalid
