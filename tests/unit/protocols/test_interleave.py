"""Randomised complete blocks are complete, random, mirrored in pairs, and the same for the same seed."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tare.protocols import Turn
from tare.protocols.fake import AsListed
from tare.protocols.interleave import Interleave
from tare.protocols.stopping import End, Finished
from tare.study.protocol_spec import InterleaveSpec


def rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def blocks_of(turns: tuple[Turn, ...]) -> list[tuple[str, ...]]:
    """The arms of each block as they run."""
    return [tuple(turn.arm for turn in block) for _, block in groupby(turns, key=lambda turn: turn.block)]


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**64))
def test_every_arm_runs_once_a_block(arms: int, blocks: int, seed: int) -> None:
    names = [f"arm{n}" for n in range(arms)]
    order = blocks_of(Interleave().order(names, InterleaveSpec(blocks=blocks), rng(seed)))
    assert len(order) == blocks
    assert all(sorted(block) == names for block in order)


@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**64))
def test_over_a_pair_of_blocks_every_arm_has_the_same_mean_place(arms: int, pairs: int, seed: int) -> None:
    names = [f"arm{n}" for n in range(arms)]
    turns = Interleave().order(names, InterleaveSpec(blocks=2 * pairs), rng(seed))
    for first in range(0, len(turns), 2 * arms):
        pair = turns[first : first + 2 * arms]
        places = {sum(n for n, turn in enumerate(pair) if turn.arm == name) for name in names}
        assert places == {2 * arms - 1}


def test_every_order_of_three_arms_is_about_as_frequent() -> None:
    generator = rng(1)
    orders = [Interleave().order(["a", "b", "c"], InterleaveSpec(blocks=1000), generator) for _ in range(12)]
    counts = Counter(block for order in orders for block in blocks_of(order)[::2])
    # Six orders, 1000 expected of each; chi-square with 5 degrees of freedom, 99.9 % quantile 20.5.
    assert len(counts) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 20.5


def test_the_order_of_a_seed_is_what_it_always_was() -> None:
    order = Interleave().order(["a", "b", "c", "d"], InterleaveSpec(blocks=3), rng(7))
    assert ["".join(block) for block in blocks_of(order)] == ["dacb", "bcad", "cadb"]


def test_without_a_target_only_the_number_of_blocks_ends_it() -> None:
    spec = InterleaveSpec(blocks=9, target=None)
    done = [Finished(block, {"a": 1.0, "b": 1.0 + block / 1e6}) for block in range(1, 10)]
    assert Interleave().stop("a", done[:8], spec).end is None
    assert Interleave().stop("a", done, spec).end is End.BLOCKS


def test_a_protocol_for_tests_stops_where_it_was_told() -> None:
    done = [Finished(block, {"a": 1.0}) for block in (1, 2)]
    assert AsListed(stop_after=2).stop("a", done[:1], InterleaveSpec()).end is None
    assert AsListed(stop_after=2).stop("a", done, InterleaveSpec()).end is End.TARGET
