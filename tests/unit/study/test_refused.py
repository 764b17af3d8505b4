"""A study that names a plug-in that is refused says why, at its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tare.errors import StudyError
from tare.study.reading.load import load
from tare.study.registry import installed

STUDY = Path(__file__).parents[3] / "studies" / "percona-2016" / "study.yaml"


def test_a_refused_plugin_is_told_where_the_study_names_it(tmp_path: Path) -> None:
    why = "database tiny of tare-tiny 1.2 is refused: tare_tiny:DB has no method serve"
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.read_text().replace("database: mariadb", "database: tiny"))
    known = replace(installed(), refused={("database", "tiny"): why})
    with pytest.raises(StudyError, match="tiny") as refused:
        load(path, known)
    assert why in str(refused.value)
    assert "study.yaml:" in str(refused.value)
