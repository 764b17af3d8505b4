"""What `make bench-fleet` and `make bench-scale` compute and print, and how long their study is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.fleet.__main__ import Took, markdown
from bench.fleet.scale import Scale, environment, exponent, fill
from bench.fleet.scale import markdown as scale_table
from bench.fleet.study import plan_of_sleeps
from tare.store import open_store, verify


def test_what_a_site_slept_is_no_overhead() -> None:
    took = Took("tare", sites=4, blocks=8, block_s=10.0, wall_s=20.8)
    assert took.overhead_ms == pytest.approx(100.0)  # 0.8 s over 8 blocks
    assert took.speed_up == pytest.approx(80 / 20.8 / 4)
    assert Took("tare", 1, 50, 0.0, 1.0).overhead_ms == pytest.approx(20.0)


def test_ways_stand_beside_each_other_and_what_was_not_measured_is_no_figure() -> None:
    taken = [
        Took("tare", 1, 64, 0.0, 1.28, cpu_s=0.64, start_s=1.5, rss_mb=160.0),
        Took("tare", 4, 16, 10.0, 40.0),
        Took("make -j", 4, 16, 10.0, 50.0),
        Took("tare", 16, 64, 10.0, 41.0),
    ]
    lines = markdown(taken, (0.1, 0.2)).splitlines()
    assert "| 1 | 64 | 50.0 | 20.0 | 10.0 | 1.5 | 160.0 |" in lines
    assert "| 4 | 16 of 10 s | 1.000 | 0.800 |" in lines
    assert "| 16 | 64 of 10 s | 0.976 | \N{EM DASH} |" in lines


def test_the_study_may_be_larger_than_one_that_is_made() -> None:
    plan = plan_of_sleeps(3000, 2)
    assert len({run.block for run in plan.runs}) == 3000


def test_a_figure_that_grows_with_the_runs_has_the_exponent_one() -> None:
    few, many = (
        Scale(1000, 2, "directory", {"terminal, s": 2.0}),
        Scale(10_000, 20, "directory", {"terminal, s": 20.0}),
    )
    assert exponent(few, many, "terminal, s") == pytest.approx(1.0)
    assert "| terminal, s | 2.00 | 20.00 | 1.00 | 20 |" in scale_table([few, many], (0.1, 0.2)).splitlines()


def test_commands_keep_python_s_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("TARE_HOME", "/there")
    assert "PYTHONDONTWRITEBYTECODE" not in environment()
    assert environment()["TARE_HOME"] == "/there"


def test_a_store_of_made_up_runs_reads_as_one_that_a_fleet_made(tmp_path: Path) -> None:
    plan = plan_of_sleeps(4, 2)
    fill(tmp_path / "store", plan, ["north", "south"])
    store = open_store(tmp_path / "store")
    assert {record.run_id for record in store.records()} == {run.id for run in plan.runs}
    assert all(len({one.site for one in store.records() if one.block == block}) == 1 for block in range(1, 5))
    assert not verify(store)
