"""The pilot of a rotation on simulated machines: how long turns last, how long arms settle, when it gives up."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tare.protocols.turn_pilot import LENGTHS_MS, SLICES, Trial, choose, rounds_tried
from tare.record.pilot import TurnChoice

ARMS = ("bare", "again", "bridge")
BASELINES = {"again": "bare", "bridge": "bare"}
PER_S = 20_000.0
Rate = Callable[[str, NDArray[np.float64], float], NDArray[np.float64]]
"""Arm, time since its turn began (ms) and length of the turn → what its rate is multiplied by."""


def steady(arm: str, since_ms: NDArray[np.float64], length_ms: float) -> NDArray[np.float64]:
    del length_ms
    return np.full(len(since_ms), 0.8 if arm == "bridge" else 1.0)


def wakes_up_slowly(arm: str, since_ms: NDArray[np.float64], length_ms: float) -> NDArray[np.float64]:
    """For 30 ms after it was idle, a server has half of its rate."""
    return steady(arm, since_ms, length_ms) * np.where(since_ms < 30, 0.5, 1.0)


def never_settles(arm: str, since_ms: NDArray[np.float64], length_ms: float) -> NDArray[np.float64]:
    return steady(arm, since_ms, length_ms) * (0.7 + 0.3 * since_ms / length_ms)


def slow_for_half_a_second(arm: str, since_ms: NDArray[np.float64], length_ms: float) -> NDArray[np.float64]:
    """The control is slow in the whole of a short turn, so that nothing rises in it."""
    slow = 0.6 if arm == "again" and length_ms < 200 else 1.0
    return steady(arm, since_ms, length_ms) * slow


def trials(rate: Rate, rng: np.random.Generator, noise_s: float = 0.3, ended_ms: float = 0.4) -> list[Trial]:
    """Simulate a pilot. The machine's speed is AR(1) with this correlation time and a spread of 8 %."""
    made = []
    for length_ms in LENGTHS_MS:
        slice_ms, rounds = length_ms / SLICES, rounds_tried(len(ARMS))
        phi = math.exp(-slice_ms / 1000 / noise_s)
        level, speed = 0.0, []
        for _ in range(rounds * len(ARMS) * SLICES):
            level = phi * level + math.sqrt(1 - phi**2) * rng.normal(0, 0.08)
            speed.append(math.exp(level))
        turns = np.array(speed, dtype=np.float64).reshape(rounds, len(ARMS), SLICES)
        since_ms = np.array([(place + 0.5) * slice_ms for place in range(SLICES)], dtype=np.float64)
        counts: dict[str, NDArray[np.float64]] = {}
        for place, arm in enumerate(ARMS):
            mean = PER_S * slice_ms / 1000 * turns[:, place, :] * rate(arm, since_ms, length_ms)
            counts[arm] = rng.poisson(mean).astype(float)
        made.append(Trial(length_ms, counts, [ended_ms] * rounds * len(ARMS)))
    return made


def chosen(rate: Rate, seed: int, **how: float) -> TurnChoice | str:
    return choose(
        trials(rate, np.random.default_rng(seed), **how), BASELINES, start_s=12.0, most_s=10.0, rounds=None
    )


def lengths(choice: TurnChoice | str) -> float:
    assert isinstance(choice, TurnChoice), choice
    return choice.turn_ms + choice.settle_ms


def test_short_turns_are_chosen_where_the_machine_is_noisy_and_nothing_is_carried_over() -> None:
    assert np.mean([lengths(chosen(steady, seed)) <= 120 for seed in range(40)]) >= 0.9


def test_a_choice_says_how_exact_each_length_was_and_how_many_rounds_pay() -> None:
    choice = chosen(steady, 1)
    assert isinstance(choice, TurnChoice)
    (best,) = [each for each in choice.tried if each.length_ms == choice.turn_ms + choice.settle_ms]
    assert best.error == min(each.error for each in choice.tried if each.error is not None)
    turns_s = math.sqrt(12.0) * best.error / 0.0175
    expected = min(round(turns_s / (len(ARMS) * best.length_ms / 1000)), math.floor(10_000 / choice.turn_ms))
    assert choice.rounds == max(10, expected)
    assert f"turns of {choice.turn_ms:g} ms after {choice.settle_ms:g} ms of settling" in choice.sentence


def test_arms_settle_until_their_servers_have_woken_up() -> None:
    for seed in range(20):
        choice = chosen(wakes_up_slowly, seed)
        assert isinstance(choice, TurnChoice), choice
        # What remains of the slow start changes a mean rate by at most about the target width.
        left = max(0.0, 30 - choice.settle_ms) / 2 / choice.turn_ms
        assert left <= 0.03, (seed, choice.sentence)


def test_it_gives_up_where_no_length_is_free_of_carry_over() -> None:
    for seed in range(20):
        why = chosen(never_settles, seed, noise_s=0.05)
        assert isinstance(why, str), why
        assert "turns of up to 480 ms: rates rise or fall after half of the turn" in why


def test_it_gives_up_where_replies_come_long_after_the_turn() -> None:
    why = "turns of up to 480 ms: the turn before is not over after half of the turn"
    assert chosen(steady, 1, ended_ms=300) == why


def test_short_turns_that_change_a_ratio_are_not_chosen() -> None:
    for seed in range(20):
        assert lengths(chosen(slow_for_half_a_second, seed)) >= 240


@pytest.mark.parametrize(("arms", "rounds"), [(2, 24), (3, 12), (7, 6), (20, 6)])
def test_more_arms_need_fewer_rounds(arms: int, rounds: int) -> None:
    assert rounds_tried(arms) == rounds


def test_rounds_that_a_study_sets_stay() -> None:
    choice = choose(trials(steady, np.random.default_rng(1)), BASELINES, start_s=12.0, most_s=10.0, rounds=77)
    assert isinstance(choice, TurnChoice)
    assert choice.rounds == 77


def test_turns_in_which_an_arm_ends_nothing_are_no_use() -> None:
    slow = trials(steady, np.random.default_rng(7))
    slow[0].counts["bridge"][:] = 0
    chosen = choose(slow, BASELINES, start_s=20, most_s=30, rounds=None)
    assert isinstance(chosen, TurnChoice)
    assert chosen.tried[0].why_not == "bridge ends no operation in half of a turn"
    assert f"{LENGTHS_MS[0]:g} ms: bridge ends no operation" in chosen.sentence
    for trial in slow:
        trial.counts["bridge"][:] = 0
    chosen = choose(
        [Trial(t.length_ms, t.counts, t.ended_ms) for t in slow], BASELINES, start_s=20, most_s=30, rounds=1
    )
    assert chosen == "turns of up to 480 ms: bridge ends no operation in half of a turn"
