"""A duet's blocks: the baseline with every other arm in turn, each beginning on either set of CPUs as often."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.protocols import Turn
from tare.protocols.duet import Duet
from tare.protocols.stopping import End, Finished
from tare.study.protocol_spec import DuetSpec

ARMS = ("base", "x", "y", "z")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def blocks_of(turns: tuple[Turn, ...]) -> list[list[str]]:
    return [[turn.arm for turn in turns if turn.block == block] for block in range(1, turns[-1].block + 1)]


@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 1000))
def test_every_block_is_the_baseline_with_one_other_arm_each_as_often(others: int, times: int, seed: int) -> None:
    turns = Duet().order(ARMS[: others + 1], DuetSpec(name="duet", blocks=times), rng(seed))
    pairs = [frozenset(block) for block in blocks_of(turns)]
    assert Counter(pairs) == {frozenset({"base", arm}): times for arm in ARMS[1 : others + 1]}


def test_over_two_blocks_of_an_arm_both_begin_on_both_sets_of_cpus() -> None:
    pairs = blocks_of(Duet().order(ARMS, DuetSpec(name="duet", blocks=6), rng(3)))
    for begin in range(0, 18, 6):
        first, second = pairs[begin : begin + 3], pairs[begin + 3 : begin + 6]
        assert second == [pair[::-1] for pair in reversed(first)]


def test_who_begins_where_is_drawn_anew_for_every_pair_of_blocks() -> None:
    pairs = blocks_of(Duet().order(("base", "x"), DuetSpec(name="duet", blocks=400), rng()))
    first = Counter(pair[0] for pair in pairs[::2])
    assert 60 < first["base"] < 140


def finished(blocks: int, noise: float = 0.001) -> list[Finished]:
    """Blocks of three arms in turn."""
    draw = rng(1)
    made = []
    for block in range(blocks):
        rates: dict[str, float | None] = dict.fromkeys(ARMS)
        rates["base"] = 1000.0
        rates[ARMS[1 + block % 3]] = 1000.0 * float(np.exp(noise * draw.normal()))
        made.append(Finished(block + 1, rates, seconds=10.0))
    return made


def test_it_looks_when_every_arm_has_eight_blocks_and_not_before() -> None:
    spec = DuetSpec(name="duet")
    decisions = {blocks: Duet().stop("base", finished(blocks), spec) for blocks in (8, 23, 24)}
    assert [decisions[blocks].end for blocks in (8, 23, 24)] == [None, None, End.TARGET]
    assert {name: arm.n for name, arm in decisions[24].arms.items()} == {"x": 8, "y": 8, "z": 8}
    assert decisions[24].blocks == 24


def test_its_cap_counts_the_blocks_of_each_arm() -> None:
    spec = DuetSpec(name="duet", blocks=9, target=1e-6)
    assert Duet().stop("base", finished(26), spec).end is None
    assert Duet().stop("base", finished(27), spec).end is End.BLOCKS


def test_its_cap_on_time_leaves_no_arm_with_a_block_less() -> None:
    spec = DuetSpec(name="duet", max_minutes=1.0)
    ends = [Duet().stop("base", finished(blocks), spec).end for blocks in range(1, 7)]
    assert ends == [None, None, None, None, None, End.TIME]


def test_before_the_first_block_nothing_is_decided() -> None:
    assert Duet().stop("base", (), DuetSpec(name="duet")).end is None


@pytest.mark.parametrize(
    ("cpus", "why"),
    [
        (["0", "0"], "is in both sets"),
        (["0-1", "2"], "the sets have 2 and 1 CPUs"),
        (["0-1", "1-2"], "CPU 1 is in both"),
    ],
)
def test_the_two_sets_of_cpus_are_disjoint_and_equal(cpus: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        DuetSpec(name="duet", cpus=(cpus[0], cpus[1]))
