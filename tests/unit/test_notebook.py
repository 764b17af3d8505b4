"""The notebook runs on a store as it is documented, comes to tare's own estimates, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from tests.unit.analyze import synthetic
from tests.unit.stores import store_of

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "estimates.ipynb"
ARMS = ("bare", "host", "bridge")


def test_no_outputs_are_kept() -> None:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells  # type: ignore[no-untyped-call]  # nbformat is typed in part
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert len(code) >= 6
    assert not [cell for cell in code if cell.outputs or cell.execution_count is not None]


def test_it_comes_to_the_same_estimates_and_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = [{"end_s": float(n + 1), "throughput_per_s": 1900.0 + n} for n in range(4)]
    made = [
        synthetic.changed(each, lambda tree: tree["measurement"].update(windows=windows))
        for each in synthetic.records((*ARMS, "baseline-again"), 5)
    ]
    monkeypatch.setenv("TARE_STORE", str(store_of(tmp_path / "store", made)))
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]  # nbformat is typed in part
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.get("text", "") for output in outputs)
    assert "3 arms: the same, figure by figure" in printed
    assert sum("vegaEmbed" in output.get("data", {}).get("text/html", "") for output in outputs) == 2
