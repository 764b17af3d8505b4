"""The order of turns: balanced designs, drawn at random, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tare.protocols.rotate import Rotate, rounds, turns_a_round, williams
from tare.study.protocol_spec import RotateSpec


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize("arms", range(2, 10))
def test_each_arm_stands_in_each_place_and_after_each_other_arm_equally_often(arms: int) -> None:
    rows = williams(arms)
    assert len(rows) == (2 * arms if arms % 2 else arms)
    assert all(sorted(row) == list(range(arms)) for row in rows)
    for place in range(arms):
        assert set(Counter(row[place] for row in rows).values()) == {len(rows) // arms}
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == arms * (arms - 1)
    assert len(set(follows.values())) == 1


def test_the_known_design_of_four() -> None:
    assert williams(4) == ((0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (3, 0, 2, 1))


def test_each_round_has_every_arm_once_and_each_seed_its_order() -> None:
    order = rounds(("a", "b", "c"), 20, rng())
    assert len(order) == 20
    assert all(sorted(each) == ["a", "b", "c"] for each in order)
    assert order == rounds(("a", "b", "c"), 20, rng())
    assert order != rounds(("a", "b", "c"), 20, rng(2))


def test_over_whole_designs_no_arm_follows_another_more_often_within_rounds() -> None:
    follows = Counter(pair for each in rounds(("a", "b", "c"), 60, rng()) for pair in pairwise(each))
    assert set(follows.values()) == {20}


@pytest.mark.parametrize(("arms", "turns"), [(1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (30, 5)])
def test_a_baseline_has_more_turns_as_more_arms_share_it(arms: int, turns: int) -> None:
    baselines = {"bare": "bare", **{f"arm-{n}": "bare" for n in range(arms)}}
    assert turns_a_round(baselines) == {**dict.fromkeys(baselines, 1), "bare": turns}


def test_each_baseline_has_turns_for_its_own_arms() -> None:
    baselines = {"bare": "bare", "own": "own", **{f"arm-{n}": "own" for n in range(4)}, "other": "bare"}
    assert {arm: turns for arm, turns in turns_a_round(baselines).items() if turns > 1} == {"own": 2}


def test_arms_with_several_turns_have_them_in_each_round() -> None:
    for each in rounds(("a", "b", "c"), 20, rng(), {"a": 2}):
        assert Counter(each) == {"a": 2, "b": 1, "c": 1}


def test_a_generation_is_a_block_with_every_arm() -> None:
    spec = RotateSpec(name="rotate", blocks=3)
    turns = Rotate().order(("a", "b", "c"), spec, rng())
    assert [turn.block for turn in turns] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert Counter(turn.arm for turn in turns) == {"a": 3, "b": 3, "c": 3}


def test_rounds_add_up_to_the_measure_phase() -> None:
    spec = RotateSpec(name="rotate", turn_ms=100, settle_ms=20)
    assert (spec.rounds_of(6.0), spec.warm_up_rounds_of(1.0), spec.warm_up_rounds_of(0.0)) == (60, 9, 1)
    assert spec.model_copy(update={"rounds": 25}).rounds_of(6.0) == 25
    assert spec.rounds_of(0.2) == 10, "fewer would tell little about a generation"


def test_a_study_counts_generations() -> None:
    spec = RotateSpec.model_validate({"name": "rotate", "generations": 12})
    assert spec.blocks == 12
    assert RotateSpec.model_validate(spec.model_dump()) == spec


def test_servers_and_clients_need_cpus_of_their_own() -> None:
    with pytest.raises(ValueError, match="CPU 1 is in both sets"):
        RotateSpec(name="rotate", cpus=("0-1", "1"))
    assert RotateSpec(name="rotate", cpus=None).cpus is None
