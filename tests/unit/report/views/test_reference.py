"""docs/reference/views.md says what the code says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.unit.analyze.views.traces import trace

from tare.analyze.views import VIEWS
from tare.analyze.views.compare import OBSERVED
from tare.analyze.views.model import Quantity
from tare.analyze.views.readings import READINGS
from tare.report.views.files import COLUMNS
from tare.report.views.reference import BEGIN, reference

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "views.md"
QUANTITIES = [(view.tool, quantity) for view in VIEWS.values() for quantity in view.quantities]


def test_the_page_has_what_the_code_says() -> None:
    result = PAGE.read_text().partition(BEGIN)[0]
    if os.environ.get("TARE_WRITE_DOCS"):
        PAGE.write_text(f"{result}{BEGIN}\n\n{reference()}")
    assert PAGE.read_text().partition(BEGIN)[2] == f"\n\n{reference()}"


def test_every_key_of_the_files_is_explained() -> None:
    result = PAGE.read_text().partition(BEGIN)[0]
    explained = set(re.findall(r"`(\w+)`", result))
    assert set(COLUMNS) <= explained, set(COLUMNS) - explained


@pytest.mark.parametrize(("tool", "quantity"), QUANTITIES, ids=[f"{tool} {each.name}" for tool, each in QUANTITIES])
def test_a_quantity_says_how_it_is_made_and_by_whom(tool: str, quantity: Quantity) -> None:
    assert quantity.readings in READINGS
    assert quantity.says
    assert re.search(r"\.(go|c|h)\b|kernel:", quantity.cites), "its source names no file"
    names = [each.name for each in VIEWS[tool].quantities]
    assert len(names) == len(set(names))
    if quantity.weighted_by is not None:
        assert quantity.weighted_by in names
    if quantity.grain is not None:
        assert trace().quantum(quantity.grain.table, quantity.grain.column), "no quantum is known of its counter"
    assert quantity.resolution(trace(), 1.0) >= quantity.step > 0


def test_every_tool_says_what_it_cannot_see() -> None:
    assert all(view.blind_to and view.cadence for view in VIEWS.values())
    assert "value" in OBSERVED
