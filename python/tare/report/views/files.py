"""Views of a trace as JSON and CSV: one entry per quantity, tool and subject; docs/reference/views.md."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from tare.analyze.views.summary import Line, Views
from tare.report.frames.files import harmless

FORMAT = 1
COLUMNS = (
    "measure", "subject", "tool", "quantity", "shown", "unit", "kind", "samples", "value", "least", "most",
    "core_percent", "resolution", "real", "real_samples", "compared_view", "difference", "low", "high", "agrees",
    "emulated",
)  # fmt: skip
"""Keys of a line in JSON and columns in CSV."""


def as_json(views: Views) -> str:
    """Return all lines, and why they differ; unknown values are null."""
    tree = {
        "format": FORMAT,
        "seconds": views.seconds,
        "interval_s": views.interval_s,
        "complete": views.complete,
        "emulated": None if views.emulated is None else list(views.emulated),
        "hosts": dict(views.hosts),
        "lines": [entry(views, line) for line in views.lines],
        "why": list(views.why),
        "tools": [
            {"tool": view.tool, "title": view.title, "cadence": view.cadence, "blind_to": list(view.blind_to)}
            for view in views.tools
        ],
    }
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def as_csv(views: Views) -> str:
    """Return all lines; unknown values are empty. Names of processes and containers are no formulas."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for line in views.lines:
        cells = entry(views, line)
        writer.writerow({name: harmless(cell) if isinstance(cell, str) else cell for name, cell in cells.items()})
    return out.getvalue()


def entry(views: Views, line: Line) -> dict[str, Any]:
    """Return the cells of a line, by `COLUMNS`."""
    real = line.real
    return {
        "measure": str(line.measure),
        "subject": line.subject,
        "tool": line.view.tool,
        "quantity": line.quantity.name,
        "shown": line.quantity.shown,
        "unit": line.quantity.unit,
        "kind": str(line.quantity.kind),
        "samples": line.figures.samples,
        "value": line.figures.value,
        "least": line.figures.least,
        "most": line.figures.most,
        "core_percent": line.core_percent,
        "resolution": line.resolution,
        "real": None if real is None else real.real,
        "real_samples": None if real is None else real.samples,
        "compared_view": None if real is None else real.view,
        "difference": None if real is None else real.difference,
        "low": None if real is None else real.low,
        "high": None if real is None else real.high,
        "agrees": None if real is None else real.agrees,
        "emulated": None if views.emulated is None else bool(views.emulated),
    }
