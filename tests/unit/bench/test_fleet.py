"""What `make bench-fleet` computes and prints, and that its study is as long as it was asked for."""

from __future__ import annotations

import pytest

from bench.fleet.__main__ import Took, markdown
from bench.fleet.study import plan_of_sleeps


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
