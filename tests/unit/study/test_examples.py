"""Every study among the documentation's examples is right, and compares what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.study.reading.load import load
from tare.study.registry import installed

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.mark.parametrize("name", ["confinement", "cpu-limits", "engines"])
def test_an_example_can_be_run_as_it_stands(name: str) -> None:
    study = load(EXAMPLES / name / "study.yaml", installed())
    assert study.name == name
    assert len(study.factors) == 1
    assert len(study.arms) >= 4
