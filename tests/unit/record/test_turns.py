from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tare.record.turns import Rotation, Turns, turns_of

MS = 1e6
SETTLE_MS, TURN_MS, ARMS, ROUNDS = 80, 200, 5, 40
DRIVEN, IDLE = 0.93, 0.04


def rotation(seed: int = 1) -> Rotation:
    """One arm of `ARMS`, at a random place in each round; two rounds warm up."""
    places = np.random.Generator(np.random.PCG64(seed)).integers(0, ARMS, ROUNDS)
    numbers = tuple(round_ * ARMS + int(place) for round_, place in enumerate(places))
    return Rotation(
        arms=ARMS, turns=ROUNDS * ARMS, warm_up_turns=2 * ARMS, turn_ms=TURN_MS, settle_ms=SETTLE_MS,
        numbers=numbers[2:], began_monotonic_s=12.3,
    )  # fmt: skip


def turns(**changes: Any) -> Turns:
    measured = turns_of(replace(rotation(), **changes))
    assert measured is not None
    return measured


def counter(of: Turns, at_ns: np.ndarray) -> np.ndarray:
    """A counter that grows at `DRIVEN` in the arm's turns, and at `IDLE` otherwise; seconds."""
    within = of.within(np.zeros_like(at_ns), at_ns)
    return (DRIVEN * within + IDLE * (at_ns - within)) / 1e9


def samples(of: Turns, every_ms: float) -> np.ndarray:
    first, last = of.rounds_ns
    return np.arange(first - 3 * every_ms * MS + 17e6, last + 3 * every_ms * MS, every_ms * MS)


@pytest.mark.parametrize("every_ms", [20.0, 100.0, 330.0])
def test_samples_beside_the_edges_of_turns_give_the_growth_within_them(every_ms: float) -> None:
    of = turns()
    at = samples(of, every_ms)
    assert of.seconds == pytest.approx((ROUNDS - 2) * TURN_MS / 1000)
    assert of.growth(at, counter(of, at)) == pytest.approx(DRIVEN * of.seconds)
    rates = of.rates(at, counter(of, at))
    assert rates is not None
    assert rates.idle == pytest.approx(IDLE)


def test_noise_of_the_counter_does_not_shift_the_estimate() -> None:
    of = turns()
    at = samples(of, 100.0)
    rng = np.random.Generator(np.random.PCG64(7))
    noisy = [of.growth(at, counter(of, at) + rng.normal(0, 0.004, len(at))) or 0.0 for _ in range(400)]
    error = np.std(noisy) / np.sqrt(len(noisy))
    assert np.mean(noisy) == pytest.approx(DRIVEN * of.seconds, abs=4 * error)


def test_weights_of_slots_sum_samples_as_growth_does() -> None:
    of = turns()
    at = samples(of, 100.0)
    weights = of.weights(at[:-1], at[1:])
    assert weights is not None
    assert weights @ np.diff(counter(of, at)) == pytest.approx(DRIVEN * of.seconds)
    outside = at[:-1] < of.rounds_ns[0]
    assert outside.any()
    assert not weights[outside].any()


def test_samples_that_are_rarer_than_rounds_tell_nothing() -> None:
    of = turns()
    at = samples(of, ARMS * (SETTLE_MS + TURN_MS) * 20.0)
    assert of.growth(at, counter(of, at)) is None
    assert of.growth(at[:1], counter(of, at[:1])) is None


def test_turns_move_with_the_clock_of_another_host() -> None:
    of = turns().shifted(5.0)
    at = samples(of, 100.0)
    assert of.began_s == pytest.approx(17.3 + 2 * ARMS * 0.28)
    assert of.growth(at, counter(of, at)) == pytest.approx(DRIVEN * of.seconds)


def test_a_run_alone_or_a_record_without_times_has_no_turns() -> None:
    assert turns_of(None) is None
    assert turns_of(replace(rotation(), began_monotonic_s=None)) is None
