"""The reference page tells of every parameter, and of everything that is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.workloads.sysbench.parameters import SysbenchParameters
from tare.workloads.sysbench.sysbench import Sysbench

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "workloads" / "sysbench.md").read_text()
CLOSED = ROOT / "tests" / "data" / "sysbench" / "closed.stdout"


@pytest.mark.parametrize("name", SysbenchParameters.model_fields)
def test_every_parameter_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_every_detail_is_documented(tmp_path: Path) -> None:
    (tmp_path / "stderr").touch()
    measurement = Sysbench().parse(SysbenchParameters(measure_s=4), CLOSED, tmp_path / "stderr", 0)
    assert measurement.details
    assert not [name for name in measurement.details if f"`{name}`" not in PAGE]
