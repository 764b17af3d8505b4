"""The generated part of docs/reference/views.md: each tool's formulas, resolution and blind spots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tare.analyze.views import VIEWS
from tare.analyze.views.model import Quantity, View

BEGIN = "<!-- Written by `TARE_WRITE_DOCS=1 pytest tests/unit/report/test_views_reference.py`. -->"


def reference(views: Mapping[str, View] = VIEWS) -> str:
    """Return a section for each tool, in Markdown."""
    return "\n".join(line for view in views.values() for line in _section(view))


def _section(view: View) -> Iterator[str]:
    yield f"### {view.title}"
    yield ""
    yield f"`{view.tool}`. {view.cadence}"
    yield ""
    yield "| prints | quantity | unit | formula | moves in steps of | source |"
    yield "|---|---|---|---|---|---|"
    for quantity in view.quantities:
        cells = (_cell(quantity.shown), f"`{quantity.name}`", quantity.unit, _cell(quantity.says))
        yield f"| {' | '.join(cells)} | {steps(quantity)} | {_cell(quantity.cites)} |"
    yield ""
    yield "Cannot see:"
    yield ""
    yield from (f"- {what}" for what in view.blind_to)
    yield ""


def steps(quantity: Quantity) -> str:
    """Describe what limits a quantity's resolution: its printed digits, and the counter behind it."""
    printed = "1 page" if quantity.paged > 0 else f"{quantity.step:g} {quantity.unit}"
    if quantity.grain is not None:
        return f"{printed}; `{quantity.grain.table}.{quantity.grain.column}`"
    if quantity.one > 0:
        return f"{printed}; {quantity.one:g} {quantity.unit} in a sample of 1 s"
    return printed


def _cell(text: str) -> str:
    """Escape a text for a table's cell."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
