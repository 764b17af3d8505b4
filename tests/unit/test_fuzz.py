"""Damaged inputs of each kind are read or refused in words: a few seeded cases here, millions by `make fuzz`."""

from __future__ import annotations

from random import Random

import pytest

from tare.errors import RunFailed
from tare.run.unreadable import read_or_failed
from tools.fuzz.__main__ import finding
from tools.fuzz.mutations import binary, text, tree
from tools.fuzz.targets import TARGETS

CASES, SEED = 12, 20261124
FOUND = {
    "store": (46, 100010, 100019), "monitor": (213, 100015, 100027, 100226, 100511), "trace": (100140,),
}  # fmt: skip
"""Seeds of what fuzzing found: each was mended."""


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_end_in_words(name: str) -> None:
    seeds = (*FOUND.get(name, ()), *range(SEED, SEED + CASES))
    assert {seed: wrong for seed in seeds if (wrong := finding(TARGETS[name], seed)) is not None} == {}


def test_whatever_else_a_reader_raises_is_a_finding() -> None:
    def careless(chance: Random, _place: object) -> object:
        raise KeyError(chance.random())

    assert (finding(careless, 1) or "").startswith("KeyError")


def test_a_reader_that_stumbles_fails_the_run_with_what_was_read() -> None:
    with (
        pytest.raises(RunFailed, match=r"what iostat left cannot be read \(KeyError: 'x'\)"),
        read_or_failed("what iostat left"),
    ):
        raise KeyError("x")


def test_changes_depend_on_their_seed_alone() -> None:
    for change in (lambda chance: tree({"a": [1, {"b": 2}]}, chance), lambda chance: text("a 1\nb 2\n", chance)):
        assert repr(change(Random(5))) == repr(change(Random(5)))
    assert binary(b"abcdef" * 100, Random(5)) == binary(b"abcdef" * 100, Random(5))
