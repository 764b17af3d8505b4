"""The reference page tells of every parameter, and of everything that is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tare.workloads.ycsb.bindings import BINDINGS, BindingName
from tare.workloads.ycsb.measurement import Expected, measurement
from tare.workloads.ycsb.output import read_output
from tare.workloads.ycsb.parameters import YcsbParameters
from tare.workloads.ycsb.properties import MIXES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "workloads" / "ycsb.md").read_text()


@pytest.mark.parametrize("name", [*YcsbParameters.model_fields, *MIXES])
def test_every_parameter_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_binding_can_be_named_and_is_documented() -> None:
    assert set(get_args(BindingName)) == set(BINDINGS), "`BindingName` and `BINDINGS` must have the same names"
    row = next(line for line in PAGE.splitlines() if line.startswith("| `binding` |"))
    missing = [name for name in BINDINGS if f"`{name}`" not in row]
    assert not missing, f"name {missing} in the row `binding` of docs/reference/workloads/ycsb.md"


def test_every_detail_is_documented() -> None:
    text = (ROOT / "tests" / "data" / "ycsb" / "hdr.stdout").read_text()
    values = measurement(read_output(text), Expected(target_per_s=1000.0)).details
    assert len(values) >= 10
    assert not [name for name in values if f"`{name}`" not in PAGE]
