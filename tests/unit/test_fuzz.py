"""Damaged inputs of each kind are read or refused in words: a few seeded cases here, millions by `make fuzz`."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import polars as pl
import pytest

from tare.errors import RunFailed, StoreError
from tare.run.unreadable import read_or_failed
from tare.store.trace import read_trace
from tools.fuzz.__main__ import finding
from tools.fuzz.documents import Accepted
from tools.fuzz.mutations import binary, text, tree
from tools.fuzz.outputs import DATA
from tools.fuzz.stores import as_read, must_be_harmless
from tools.fuzz.targets import TARGETS

CASES, SEED = 12, 20261124
FOUND = {
    "store": (46, 100010, 100019, 20278961, 4325975215, 31024644, 52008382),
    "monitor": (213, 100015, 100027, 100226, 100511),
    "trace": (100140, 4336971912),
    "report": (20262900, 20269830, 4315228514, 31011633, 52004997),
    "study": (4326017934,),
}
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


def test_a_library_that_panics_is_an_error_message_and_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = type("PanicException", (BaseException,), {})

    def panics(*_args: object) -> object:
        raise panic("divisor of zero")

    with pytest.raises(RunFailed, match="divisor of zero"), read_or_failed("its output"):
        panics()
    assert (finding(panics, 1) or "").startswith("PanicException")
    shutil.copytree(DATA / "trace", tmp_path / "trace")
    monkeypatch.setattr(pl, "read_parquet", panics)
    with pytest.raises(StoreError, match="divisor of zero"):
        read_trace(tmp_path / "trace")


@pytest.mark.parametrize(
    "markdown",
    [
        "a <script>alert(1)</script>",
        "[l](javascript:alert(1))",
        "| a |\n|---|\n| ![i](http://x/y) |",
        '<b onmouseover="alert(1)">x</b>',
        "`` <script>` ``<script>",
    ],
)
def test_markup_in_markdown_is_a_finding(markdown: str) -> None:
    with pytest.raises(Accepted, match="in Markdown"):
        must_be_harmless(as_read(markdown), "Markdown")


def test_text_in_a_code_span_or_behind_a_backslash_is_none() -> None:
    words = "scale `]]></svg><script>alert(2)</script>`, \\<script\\>, \\[l\\](javascript:alert(1))\n"
    must_be_harmless(as_read(f"{words}\n```\n<script>\n```\n"), "Markdown")


def test_changes_depend_on_their_seed_alone() -> None:
    for change in (lambda chance: tree({"a": [1, {"b": 2}]}, chance), lambda chance: text("a 1\nb 2\n", chance)):
        assert repr(change(Random(5))) == repr(change(Random(5)))
    assert binary(b"abcdef" * 100, Random(5)) == binary(b"abcdef" * 100, Random(5))
