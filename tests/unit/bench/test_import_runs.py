"""The files and the table of `make bench-import`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.import_runs import Took, doubled, markdown, timed


def test_each_file_stands_in_for_two_machines(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "deep" / "results-1_m3.medium_m3.medium_x.txt").write_text("one")
    (tmp_path / "in" / "other.txt").write_text("no result")
    assert doubled(tmp_path / "in", tmp_path / "out") == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "results-1_m3.medium_m3.medium_x.txt", "results-1_m3.medium-again_m3.medium-again_x.txt",
    }  # fmt: skip


def test_both_is_the_sum_of_each_turn_and_no_sum_of_medians() -> None:
    fields = {
        "tare import": [Took(1.0, 0.5), Took(2.0, 0.5), Took(9.0, 0.5)],
        "tare report": [Took(5.0, 0.25), Took(2.0, 0.25), Took(1.0, 0.25)],
    }
    *_, header, _, imported, reported, both = markdown(fields, (0.1, 0.2)).splitlines()
    assert header.startswith("| command |")
    assert imported == "| tare import | 2.0 | 1.0 to 9.0 | 0.5 |"
    assert reported == "| tare report | 2.0 | 1.0 to 5.0 | 0.2 |"
    assert both == "| both | 6.0 | 4.0 to 10.0 | 0.8 |"


def test_a_process_is_timed_with_python_s_bytecode_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    took = timed("version")
    assert took.cpu_s > 0
    assert took.wall_s > 0
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
