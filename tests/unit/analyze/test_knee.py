"""A sweep's knee on curves whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.knee import Knee, knee_of
from tare.cli.study.sweep import conclusions, render
from tare.record.run_record import RunRecord

COUNTS = (1, 2, 4, 8, 16, 32)


def runs(rate: Callable[[int], float], counts: tuple[int, ...] = COUNTS) -> list[RunRecord]:
    """Two good runs of each number of threads, one above and one below its rate."""
    return [
        synthetic.record(block, f"threads-{n}", rate(n) * wobble, position=place).model_copy(
            update={"levels": {"threads": str(n)}}
        )
        for block, wobble in ((1, 0.99), (2, 1.01))
        for place, n in enumerate(counts)
    ]


def swept(rate: Callable[[int], float], counts: tuple[int, ...] = COUNTS) -> Knee:
    study = synthetic.study(tuple(f"threads-{n}" for n in COUNTS))
    arms = [arm.model_copy(update={"levels": {"threads": arm.name[8:]}}) for arm in study.arms]
    return knee_of(study.model_copy(update={"arms": tuple(arms)}), runs(rate, counts), (0.66, 0.1))


def test_full_load_is_where_more_threads_do_no_more() -> None:
    knee = swept(lambda n: min(100.0 * n, 800.0))
    assert (knee.full, knee.rising) == (8, False)
    assert knee.shares == {0.66: 5, 0.1: 1}  # 528 of 800 is 5.28 threads
    point = knee.at(8)
    assert (point.runs, point.low, point.high) == pytest.approx((2, 792, 808))
    assert point.throughput_per_s == pytest.approx(800)
    assert point.sut_busy == pytest.approx(3.95 / 4)


def test_beyond_the_knee_less_may_be_done() -> None:
    knee = swept(lambda n: 800.0 - 5 * n if n >= 8 else 90.0 * n)
    assert (knee.full, knee.rising) == (8, False)
    assert knee.shares[0.66] == round(4 + 4 * (0.66 * 760 - 360) / (760 - 360))


def test_a_flat_top_begins_within_a_twentieth_of_the_most() -> None:
    assert swept(lambda n: {4: 770.0, 8: 790.0, 16: 800.0, 32: 795.0}.get(n, 100.0 * n)).full == 4


def test_throughput_that_still_rises_is_told() -> None:
    knee = swept(lambda n: 100.0 * n)
    assert (knee.full, knee.rising) == (32, True)
    assert any("still rising at 32 threads" in line for line in conclusions("transactions", knee))


def test_numbers_of_threads_without_a_good_run_are_left_out() -> None:
    knee = swept(lambda n: min(100.0 * n, 800.0), counts=(1, 4, 16))
    assert knee.full == 16
    assert [point.runs for point in knee.points] == [2, 0, 2, 0, 2, 0]
    assert any("16 threads, the most with a good run" in line for line in conclusions("transactions", knee))
    assert swept(lambda n: 100.0 * n, counts=(4,)).full is None


def test_the_table_marks_full_load() -> None:
    text = render("From how many threads on?", "transactions", swept(lambda n: min(100.0 * n, 800.0)))
    (marked,) = [line for line in text.splitlines() if line.endswith("full load")]
    assert marked.split()[:3] == ["8", "2", "800"]
    assert "66 % of it: 5 threads" in text
    nothing = render("From how many?", "transactions", swept(lambda n: 1.0, counts=(4,)))
    assert "no knee can be estimated" in nothing


def test_a_narrow_terminal_has_fewer_columns_and_no_figure_cut() -> None:
    knee = swept(lambda n: min(12_345.0 * n, 98_765.0))
    seen = tuple(replace(point, sut_busy=0.5, client_busy=0.5, latency_p95_ms=123.0) for point in knee.points)
    narrow = render("How many?", "transactions", replace(knee, points=seen), width=80)
    assert "…" not in narrow
    assert "client CPU" in narrow
    assert "of the most" not in narrow.splitlines()[2]
    assert "of the most" in render("How many?", "transactions", replace(knee, points=seen), width=120)
    unseen = tuple(replace(point, sut_busy=None) for point in seen)
    assert "SUT CPU" not in render("How many?", "transactions", replace(knee, points=unseen), width=120)


def test_runs_that_scatter_and_a_client_at_its_limit_are_told() -> None:
    knee = swept(lambda n: min(100.0 * n, 800.0))
    assert not any("differ" in line or "client" in line for line in conclusions("transactions", knee))
    full = replace(knee.at(8), low=700.0, high=900.0, client_busy=0.95, sut_busy=0.5)
    sentences = list(conclusions("transactions", replace(knee, points=(full,))))
    assert any("differ by more than 10 %" in line for line in sentences)
    assert any("this is the client's limit" in line for line in sentences)
