"""Samples of a monitor that has answers over a range beside readings."""

from __future__ import annotations

import polars as pl

from tare.record.load_time import Span
from tare.record.trace import on_sut_clock
from tare.run.monitoring.watch import with_kept_column
from tare.study.model import MonitorSpec


def _samples(*spans: tuple[float, float]) -> pl.DataFrame:
    rows = [{"from_ns": round(begin * 1e9), "to_ns": round(end * 1e9), "value": 1.0} for begin, end in spans]
    return pl.DataFrame(rows)


def test_samples_over_a_range_count_where_all_of_it_lies_in_the_phase_and_move_no_others() -> None:
    each_second = _samples(*((float(n), n + 1.0) for n in range(1, 9)))
    ranges = _samples(*((float(n), n + 4.0) for n in range(1, 5)))
    marked = with_kept_column(pl.concat([each_second, ranges]), MonitorSpec(drop_first=1), Span(2.0, 8.0))
    kept = [(row["from_ns"] / 1e9, row["to_ns"] / 1e9) for row in marked.filter("kept").iter_rows(named=True)]
    assert kept == [(3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (2, 6), (3, 7), (4, 8)]


def test_samples_of_another_host_lie_on_the_first_one_s_clock_under_names_of_their_own() -> None:
    subjects = ("all", "sda", "sut-2", "sut-2 pid 7", "client pid 8", "dockerd pid 7")
    samples = pl.concat([_samples((11.0, 12.0)).with_columns(subject=pl.lit(subject)) for subject in subjects])
    laid = on_sut_clock(samples, "sut-2", 10.0)
    assert set(laid["from_ns"]) == {1_000_000_000}
    assert set(laid["to_ns"]) == {2_000_000_000}
    named = ["all of sut-2", "sda of sut-2", "sut-2", "sut-2 pid 7", "client pid 8", "dockerd pid 7 of sut-2"]
    assert laid["subject"].to_list() == named
    assert on_sut_clock(samples, "", 0.0) is samples
