"""The published baselines: a fixed number of runs, spread or together."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.protocols.fixed import Fixed
from tare.protocols.registry import PROTOCOLS
from tare.protocols.stopping import End, Finished
from tare.study.protocol_spec import BucketsSpec, FixedSpec, InterleaveSpec


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize("sequence", ["spread", "together"])
def test_every_arm_has_its_number_of_runs(sequence: Literal["spread", "together"]) -> None:
    turns = Fixed().order(["a", "b", "c"], FixedSpec(name="fixed", blocks=5, sequence=sequence), rng())
    assert Counter(turn.arm for turn in turns) == {"a": 5, "b": 5, "c": 5}
    assert len(set(turns)) == 15


@given(st.integers(2, 6), st.integers(1, 12), st.integers(0, 2**64))
def test_spread_never_runs_an_arm_twice_in_direct_sequence(arms: int, blocks: int, seed: int) -> None:
    names = [f"arm{n}" for n in range(arms)]
    turns = Fixed().order(names, FixedSpec(name="fixed", blocks=blocks), rng(seed))
    assert all(one.arm != next_one.arm for one, next_one in pairwise(turns))


def test_together_runs_one_arm_after_the_other() -> None:
    turns = Fixed().order(["a", "b"], BucketsSpec(name="buckets", blocks=2), rng())
    assert [(turn.arm, turn.block) for turn in turns] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_nothing_but_the_last_run_ends_it() -> None:
    done = [Finished(block, {"a": 1.0, "b": 1.0 + block / 1e6}) for block in range(1, 13)]
    spec = FixedSpec(name="fixed", blocks=12)
    assert [Fixed().stop("a", done[:n], spec).end for n in (8, 11)] == [None, None]
    assert Fixed().stop("a", done, spec).end is End.BLOCKS


def test_a_spec_without_a_sequence_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="sequence"):
        Fixed().order(["a"], InterleaveSpec(), rng())


def test_what_is_a_published_baseline_says_so() -> None:
    assert {name for name, protocol in PROTOCOLS.items() if protocol.published_baseline} == {"fixed", "buckets"}
