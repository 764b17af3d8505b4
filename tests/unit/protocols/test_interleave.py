"""Randomised complete blocks are complete, random, and the same for the same seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tare.protocols import Finished
from tare.protocols.fake import AsListed
from tare.protocols.interleave import Interleave
from tare.study.model import ProtocolSpec


def rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**64))
def test_every_arm_runs_once_a_block(arms: int, blocks: int, seed: int) -> None:
    names = [f"arm{n}" for n in range(arms)]
    order = Interleave().order(names, ProtocolSpec(blocks=blocks), rng(seed))
    assert len(order) == blocks
    assert all(sorted(block) == names for block in order)


def test_every_order_of_three_arms_is_about_as_frequent() -> None:
    generator = rng(1)
    orders = [Interleave().order(["a", "b", "c"], ProtocolSpec(blocks=1000), generator) for _ in range(6)]
    counts = Counter(block for order in orders for block in order)
    # Six orders, 1000 expected of each; chi-square with 5 degrees of freedom, 99.9 % quantile 20.5.
    assert len(counts) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 20.5


def test_the_order_of_a_seed_is_what_it_always_was() -> None:
    order = Interleave().order(["a", "b", "c", "d"], ProtocolSpec(blocks=3), rng(7))
    assert ["".join(block) for block in order] == ["dacb", "cadb", "dcba"]


def test_a_fixed_number_of_blocks_never_stops_early() -> None:
    spec = ProtocolSpec(blocks=3)
    done = [Finished(block, {"a": 1.0, "b": None}) for block in (1, 2)]
    assert Interleave().stop("a", done, spec) is None


def test_a_sequential_protocol_can_say_why_it_stops() -> None:
    done = [Finished(block, {"a": 1.0}) for block in (1, 2)]
    assert AsListed(stop_after=2).stop("a", done[:1], ProtocolSpec()) is None
    assert AsListed(stop_after=2).stop("a", done, ProtocolSpec()) == "2 blocks are enough"
