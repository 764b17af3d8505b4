"""The tutorial shows what tare prints: each command of a block with `$ tare` runs, and its output is compared.

TARE_WRITE_GOLDEN=1 writes the page anew. Stores hold runs that `python -m tools.tutorial` kept, or made-up ones.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.unit.analyze import synthetic
from tests.unit.approved import assert_as_approved
from tests.unit.shipped import shipped
from tests.unit.stores import store_of
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import TareError
from tare.record.run_record import RunRecord
from tare.store import open_store
from tools.tutorial import keep, kept

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?<=^```console\n)\$ tare .*?(?=^```$)", re.MULTILINE | re.DOTALL)
CODE = "; echo $?"
HEAD = re.compile(r" \| head -(\d+)$")
EFFECTS = {
    "bare": 1.0, "host": 0.994, "bridge": 0.93, "published-loopback": 0.43, "published-address": 0.91,
    "shared": 1.003, "baseline-again": 1.0,
}  # fmt: skip
"""Arm → its throughput relative to bare, before noise."""


def records(blocks: int, noise: float, seed: int, effects: Mapping[str, float] = EFFECTS) -> Iterator[RunRecord]:
    rng = np.random.default_rng(seed)
    for block in range(1, blocks + 1):
        shift = rng.normal(0.0, 2 * noise)
        for position, (arm, effect) in enumerate(effects.items()):
            rate = 1_900 * effect * math.exp(shift + rng.normal(0.0, noise))
            yield synthetic.record(block, arm, rate, position=position)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that the tutorial is read in, with the stores that its readers would have measured."""
    study = shipped("percona-2016", "demo")
    slower = {**EFFECTS, "bridge": 0.86}
    for name, made in {
        "demo-store": records(8, 0.006, 1),
        "noisy-store": records(4, 0.2, 4),
        "next-store": records(8, 0.006, 3, slower),
    }.items():
        store_of(tmp_path / name, kept(name) or list(made), study)
    for variable, value in {"TARE_HOME": str(tmp_path / "home"), "COLUMNS": "100", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(block: str) -> str:
    """The block as it should be: each command with what it prints now."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ tare "):
            command, head = HEAD.sub("", line.removesuffix(CODE)), HEAD.search(line)
            done = CliRunner().invoke(app, shlex.split(command)[2:])
            refusal = done.exception if isinstance(done.exception, TareError) else None
            output = done.output if refusal is None else f"{done.output}tare: {refusal}"
            code = done.exit_code if refusal is None else refusal.exit_code
            shown = output.splitlines()[: int(head[1]) if head else None]
            lines += [line, *(text.rstrip() for text in shown)]
            lines += [str(code)] if line.endswith(CODE) else []
    return "\n".join(lines).rstrip() + "\n"


@pytest.mark.usefixtures("here")
def test_the_tutorial_shows_what_tare_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) >= 8
    assert_as_approved(BLOCK.sub(lambda match: printed(match[0]), page), PAGE)


def test_an_output_that_changed_is_replaced(here: Path) -> None:
    block = "$ tare init my-study\nan old output\n$ tare init my-study; echo $?\n"
    first, second, *rest = printed(block).splitlines()
    assert (first, second[:23]) == ("$ tare init my-study", "my-study/study.yaml: ch")
    assert (rest[0], rest[-1]) == ("$ tare init my-study; echo $?", "2")
    assert rest[1].startswith("tare: ")
    assert (here / "my-study" / "study.yaml").is_file()


@pytest.mark.usefixtures("here")
def test_output_is_cut_as_the_command_says() -> None:
    whole = printed("$ tare report demo-store\n").splitlines()
    assert printed("$ tare report demo-store | head -5\n").splitlines()[1:] == whole[1:6]


def test_a_store_that_was_measured_takes_the_place_of_made_up_runs(here: Path) -> None:
    assert kept("demo-store", here) is None
    file = keep(here / "demo-store", "demo-store", here)
    before = file.read_bytes()
    again = kept("demo-store", here)
    assert again is not None
    assert again == list(open_store(here / "demo-store").records())
    assert keep(here / "demo-store", "demo-store", here).read_bytes() == before
