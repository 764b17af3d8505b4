"""Ratios of arms that take turns: known answers, coverage on machines whose speed changes, and carry-over."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

import numpy as np
import pytest
from numpy.typing import NDArray

from tare.analyze.statistics.intervals import paired_log_ratio_t
from tare.analyze.statistics.turns import Generation, spread_of
from tare.protocols.rotate import rounds

ARMS = ("bare", "other", "third")
STEP_S, STEPS, SETTLE, ROUNDS = 0.01, 12, 2, 60
"""Steps of a turn, of which the first ones settle; turns of 0.1 s after 20 ms."""
RESTART, COUNTING = 0.015, 0.02
"""Standard deviation of a restarted server's rate, and of the count in one turn."""
EFFECT = 0.9
ORDERS = 200
Speed = Callable[[np.random.Generator, int], NDArray[np.float64]]
"""Speed of the machine in each step of a generation."""


@cache
def owners(turns: tuple[tuple[str, int], ...]) -> list[NDArray[np.int64]]:
    """Orders to draw from, as the row of the arm in each turn: making each anew takes longer than the rest."""
    rng = np.random.default_rng(3)
    drawn = (rounds(ARMS, ROUNDS, rng, dict(turns)) for _ in range(ORDERS))
    return [np.array([[ARMS.index(arm) for arm in each] for each in order]).ravel() for order in drawn]


def generation(
    rng: np.random.Generator,
    speed: NDArray[np.float64],
    of_arm: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]] | None = None,
    turns: Mapping[str, int] = MappingProxyType({}),
) -> Generation:
    """Simulate one; `of_arm`: what else scales each turn's rate, from the rows of its arm and of the arm before.

    `turns`: arm → its turns in a round, if not one.
    """
    orders = owners(tuple(turns.items()))
    owner = orders[rng.integers(len(orders))]
    steps = speed.reshape(len(owner), STEPS)[:, SETTLE:]
    level = 1000 * np.array([1.0, EFFECT, 1.0])[owner] * np.exp(rng.normal(0, RESTART, len(ARMS)))[owner]
    if of_arm is not None:
        level = level * of_arm(owner, np.concatenate([[-1], owner[:-1]]))
    noise = rng.normal(1, COUNTING * math.sqrt(2), (2, len(owner)))
    halves = [level * steps[:, half].mean(axis=1) * noise[n] for n, half in enumerate((slice(0, 5), slice(5, 10)))]
    numbers = [np.flatnonzero(owner == row) for row in range(len(ARMS))]
    rates, first = ([values[each] for each in numbers] for values in ((halves[0] + halves[1]) / 2, halves[0]))
    return Generation(1, ARMS, numbers, rates, first, [np.zeros(len(each), dtype=bool) for each in numbers])


def steady(rng: np.random.Generator, steps: int) -> NDArray[np.float64]:
    del rng
    return np.ones(steps)


def drift(rng: np.random.Generator, steps: int) -> NDArray[np.float64]:
    return np.linspace(1.0, rng.uniform(0.6, 1.4), steps)


def correlated(rng: np.random.Generator, steps: int) -> NDArray[np.float64]:
    """AR(1) with a correlation time of half a second and a standard deviation of 5 %."""
    from scipy.signal import lfilter

    phi = math.exp(-STEP_S / 0.5)
    path: NDArray[np.float64] = lfilter([math.sqrt(1 - phi**2)], [1, -phi], rng.normal(0, 0.05, steps + 500))
    return np.exp(path[500:])


def bursts(rng: np.random.Generator, steps: int) -> NDArray[np.float64]:
    """Steal: every 3 s on average, half of the machine for 50 to 300 ms."""
    speed = np.ones(steps)
    for start in np.flatnonzero(rng.random(steps) < STEP_S / 3):
        speed[start : start + rng.integers(5, 31)] = 0.5
    return speed


def cron(rng: np.random.Generator, steps: int) -> NDArray[np.float64]:
    """Every 10 s, half a second at 0.7 of the speed."""
    at = (np.arange(steps) * STEP_S + rng.uniform(0, 10)) % 10
    return np.where(at < 0.5, 0.7, 1.0)


def at_the_rounds_period(rng: np.random.Generator, steps: int) -> NDArray[np.float64]:
    period = STEPS * len(ARMS)
    return 1 + 0.1 * np.sin(2 * np.pi * (np.arange(steps) / period + rng.random()))


def heats_up(owner: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.float64]:
    """The other arm loses up to 6 % while it runs."""
    del before
    return np.where(owner == 1, np.linspace(1.0, 0.94, len(owner)), 1.0)


@pytest.mark.parametrize(
    ("speed", "of_arm", "truth"),
    [
        (steady, None, EFFECT),
        (drift, None, EFFECT),
        (correlated, None, EFFECT),
        (bursts, None, EFFECT),
        (cron, None, EFFECT),
        (at_the_rounds_period, None, EFFECT),
        (steady, heats_up, EFFECT * 0.97),
    ],
    ids=["steady", "drift", "correlated", "bursts", "cron", "at-the-rounds-period", "one-arm-heats-up"],
)
def test_the_interval_over_generations_covers_the_effect(
    speed: Speed, of_arm: Callable[..., NDArray[np.float64]] | None, truth: float
) -> None:
    rng, studies, covered = np.random.default_rng(4), 500, 0
    steps = STEPS * ROUNDS * len(ARMS)
    for _ in range(studies):
        made = [generation(rng, speed(rng, steps), of_arm) for _ in range(8)]
        interval = paired_log_ratio_t([math.exp(each.log_ratio("other", "bare")) for each in made], 0.95)
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= truth - 1 <= interval.high
    assert 0.93 <= covered / studies <= 0.97


def test_a_servers_stalls_count_in_full() -> None:
    """A median over rounds would say that nothing happened."""
    rates = np.full((2, 40), 100.0)
    rates[1, ::20] = 0.0
    made = Generation(
        1, ("bare", "stalls"), [*np.arange(80).reshape(2, 40)], [*rates], [*rates], [*np.zeros((2, 40), dtype=bool)]
    )
    assert math.exp(made.log_ratio("stalls", "bare")) == pytest.approx(0.95)


def test_the_error_within_a_generation_is_that_of_its_ratio() -> None:
    rng = np.random.default_rng(5)
    made = [generation(rng, np.ones(STEPS * ROUNDS * len(ARMS))) for _ in range(400)]
    expected = COUNTING * math.sqrt(2 / ROUNDS)
    assert np.mean([each.error_within("other", "bare") for each in made]) == pytest.approx(expected, rel=0.05)
    spread = spread_of(made, "other", "bare")
    assert spread is not None
    assert math.sqrt(spread.between) == pytest.approx(RESTART * math.sqrt(2), rel=0.1)
    assert spread.helps == "generations"


def test_a_baseline_with_two_turns_a_round_has_half_the_variance() -> None:
    rng, twice = np.random.default_rng(7), {"bare": 2}
    steps = np.ones(STEPS * ROUNDS * (len(ARMS) + 1))
    made = [generation(rng, steps, turns=twice) for _ in range(400)]
    assert {each.rounds for each in made} == {ROUNDS}
    expected = COUNTING * math.sqrt((1 + 1 / 2) / ROUNDS)
    assert np.mean([each.error_within("other", "bare") for each in made]) == pytest.approx(expected, rel=0.05)
    assert np.mean([each.log_ratio("other", "bare") for each in made]) == pytest.approx(math.log(EFFECT), abs=0.004)


def test_what_an_arm_leaves_behind_is_measured_where_the_baseline_has_two_turns_a_round() -> None:
    rng = np.random.default_rng(8)

    def slow_after_other(owner: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where((owner == 0) & (before == 1), 0.95, 1.0)

    steps = np.ones(STEPS * ROUNDS * (len(ARMS) + 1))
    made = [generation(rng, steps, slow_after_other, turns={"bare": 2}) for _ in range(50)]
    assert np.mean([each.after("bare", "other") for each in made]) == pytest.approx(-0.05, abs=0.006)
    assert np.mean([each.after("third", "other") for each in made]) == pytest.approx(0.0, abs=0.006)


def test_one_generation_has_no_spread() -> None:
    made = generation(np.random.default_rng(1), np.ones(STEPS * ROUNDS * len(ARMS)))
    assert spread_of([made], "other", "bare") is None


def test_a_rise_within_turns_is_measured() -> None:
    rates = np.full((1, 10), 100.0)
    made = Generation(1, ("bare",), [np.arange(10)], [*rates], [*(0.9 * rates)], [np.zeros(10, dtype=bool)])
    assert math.exp(made.rise("bare")) == pytest.approx(1.1 / 0.9)


def test_what_an_arm_leaves_behind_is_measured() -> None:
    rng = np.random.default_rng(6)

    def slow_after_other(owner: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where((owner == 2) & (before == 1), 0.95, 1.0)

    speed = np.ones(STEPS * ROUNDS * len(ARMS))
    made = [generation(rng, speed, slow_after_other) for _ in range(50)]
    assert np.mean([each.after("third", "other") for each in made]) == pytest.approx(-0.05, abs=0.006)
    assert np.mean([each.after("bare", "other") for each in made]) == pytest.approx(0.0, abs=0.006)
