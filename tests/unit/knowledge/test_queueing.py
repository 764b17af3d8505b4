"""Closed networks whose throughput is known."""

from __future__ import annotations

import pytest

from tare.knowledge.predictions.queueing import slowest_demand, thinking_time, throughput


def test_one_customer_alone_meets_no_queue() -> None:
    assert throughput(1, [3.0, 1.0], 4.0) == pytest.approx(1 / 8)


def test_balanced_stations_have_the_known_answer() -> None:
    # Of m stations of one demand d, n customers have n / (d (n + m - 1)).
    assert throughput(5, [2.0, 2.0, 2.0]) == pytest.approx(5 / (2.0 * 7))


def test_many_customers_are_held_up_by_the_slowest_station_alone() -> None:
    assert throughput(400, [1.0, 4.0]) == pytest.approx(1 / 4)


@pytest.mark.parametrize("delay", [0.0, 0.7, 25.0])
def test_the_delay_that_made_a_throughput_is_found_again(delay: float) -> None:
    rate = throughput(16, [1.0, 0.5], delay)
    assert throughput(16, [1.0, 0.5], thinking_time(16, [1.0, 0.5], rate)) == pytest.approx(rate)


def test_the_station_that_made_a_throughput_is_found_again_and_is_no_faster_than_it_was_seen() -> None:
    rate = throughput(16, [1.0, 0.5, 3.0])
    assert slowest_demand(16, [1.0, 0.5], 2.0, rate) == pytest.approx(3.0)
    assert slowest_demand(16, [1.0, 0.5], 4.0, rate) == 4.0


def test_a_throughput_beyond_the_network_leaves_no_delay() -> None:
    assert thinking_time(4, [1.0], 2.0) == 0.0


def test_nothing_that_takes_no_time_is_a_network() -> None:
    with pytest.raises(ValueError, match="takes time"):
        throughput(1, [0.0])
