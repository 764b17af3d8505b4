"""The offset between two clocks: known answers, and that its bound holds whatever the two ways took."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.errors import RunFailed
from tare.record.between import Offset
from tare.run.between.clocks import (
    MOST_BOUND_S,
    MOST_DRIFT,
    Exchange,
    SiteClock,
    disagreement,
    interpolated,
    must_agree,
    must_not_step,
    offset_of,
)
from tare.run.clock import SystemClock


def exchange(at: float, offset: float, there: float, back: float, inside: float = 0.0) -> Exchange:
    """One that began at `at`, over ways of these lengths."""
    received = at + there + offset
    return Exchange(at, received, received + inside, at + there + inside + back)


def test_the_offset_of_an_even_exchange_is_exact() -> None:
    estimate = offset_of([exchange(100.0, 7.5, 0.001, 0.001, 0.25)])
    assert estimate.offset_s == pytest.approx(7.5)
    assert estimate.bound_s == pytest.approx(0.001)


def test_the_quickest_exchange_counts() -> None:
    slow, quick = exchange(100.0, 7.5, 0.2, 0.0), exchange(101.0, 7.5, 0.0001, 0.0003)
    offset = offset_of([slow, quick, slow])
    assert offset.offset_s == pytest.approx(7.4999)
    assert offset.bound_s == pytest.approx(0.0002)


def test_an_exchange_that_went_all_one_way_is_off_by_its_bound() -> None:
    estimate = offset_of([exchange(100.0, 0.0, 0.01, 0.0)])
    assert estimate.offset_s == pytest.approx(estimate.bound_s)


def test_without_an_exchange_there_is_no_offset() -> None:
    with pytest.raises(ValueError, match="empty"):
        offset_of([])


ways = st.floats(0, 1)


@given(
    offset=st.floats(-1e9, 1e9),
    trips=st.lists(st.tuples(ways, ways, ways), min_size=1, max_size=20),
    at=st.floats(0, 1e6),
)
def test_the_true_offset_is_always_within_the_bound(
    offset: float, trips: list[tuple[float, float, float]], at: float
) -> None:
    estimate = offset_of([exchange(at + n, offset, *trip) for n, trip in enumerate(trips)])
    rounding = 16 * math.ulp(abs(offset) + at + 100)
    assert abs(estimate.offset_s - offset) <= estimate.bound_s + rounding


@given(trips=st.lists(st.tuples(ways, ways, ways), min_size=2, max_size=20))
def test_more_exchanges_never_widen_the_bound(trips: list[tuple[float, float, float]]) -> None:
    every = [exchange(float(n), 3.0, *trip) for n, trip in enumerate(trips)]
    assert offset_of(every).bound_s <= offset_of(every[:-1]).bound_s


def test_between_two_measurements_the_clocks_part_evenly() -> None:
    before, after = Offset(1.0, 1e-4, 100.0), Offset(1.01, 1e-4, 200.0)
    assert interpolated(before, after, 150.0) == pytest.approx(1.005)
    assert interpolated(before, after, 90.0) == 1.0
    assert interpolated(before, after, 300.0) == 1.01
    assert interpolated(before, before, 100.0) == 1.0


def test_what_ntp_may_slew_is_no_step() -> None:
    before = Offset(1.0, 1e-4, 0.0)
    assert disagreement(before, Offset(1.0 + 100 * MOST_DRIFT, 1e-4, 100.0)) is None


def test_a_step_of_a_clock_voids_the_run() -> None:
    before, after = Offset(1.0, 1e-4, 0.0), Offset(1.1, 1e-4, 10.0)
    with pytest.raises(RunFailed, match=r"of db and load cannot be aligned: .* changed by 100\.000 ms in 10 s"):
        must_agree(before, after, ("db", "load"))


def test_a_step_is_found_in_either_direction() -> None:
    assert disagreement(Offset(1.0, 1e-4, 0.0), Offset(0.9, 1e-4, 10.0)) is not None


def test_an_offset_that_is_hardly_known_voids_the_run() -> None:
    vague = Offset(0.0, 2 * MOST_BOUND_S, 0.0)
    assert "uncertain by 100.0 ms" in (disagreement(vague, vague) or "")


def test_a_sites_clock_runs_ahead_by_what_it_was_told() -> None:
    own = SystemClock()
    clock = SiteClock(own, ahead_s=1000.0, wall_ahead_s=-50.0)
    assert clock.monotonic() - own.monotonic() == pytest.approx(1000.0, abs=1)
    assert clock.wall() - own.wall() == pytest.approx(-50.0, abs=1)


def test_a_wall_clock_that_was_set_is_named_with_its_step() -> None:
    must_not_step(1000.0, 1000.001, "load")
    with pytest.raises(RunFailed, match=r"the wall clock of load was set forward by 3600\.000 s in the run"):
        must_not_step(1000.0, 4600.0, "load")
    with pytest.raises(RunFailed, match=r"was set back by 0\.500 s"):
        must_not_step(1000.0, 999.5, "load")
