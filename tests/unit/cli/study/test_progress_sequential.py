"""What a running study shows: each arm's interval so far, and the blocks that are expected yet."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.unit.plan.test_expand import a_study

from tare.cli.study.progress import Tally, _log, display, so_far
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.protocols.stopping import Decision, End, Finished, Progress, Rule, decide
from tare.run.events import BlockEnded
from tare.run.resume import StudyState
from tare.study.protocol_spec import InterleaveSpec


def the_plan() -> Plan:
    return expand(a_study(arms=2).model_copy(update={"protocol": InterleaveSpec(blocks=30)}))


def shown(tally: Tally) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(display(tally))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def decided(blocks: int, spread: float) -> Decision:
    """After so many blocks, with an arm at -10 % that is off by `spread` to either side in turn."""
    finished = [
        Finished(n, {"arm0": 100.0, "arm1": 90 * (1 + spread * (-1) ** n), "baseline-again": 100 + n % 2})
        for n in range(1, blocks + 1)
    ]
    return decide(Rule(blocks=30), "arm0", finished)


def test_before_anything_is_known_the_plan_s_estimate_is_shown() -> None:
    tally = Tally(the_plan(), StudyState())
    assert tally.blocks == 8
    assert "0 of about 24 runs" in shown(tally)
    assert "blocks needed yet" not in shown(tally)


def test_each_arm_is_shown_with_its_interval_and_what_it_needs_yet() -> None:
    tally = Tally(the_plan(), StudyState())
    tally.take(BlockEnded(decided(6, 0.04)))
    text = shown(tally)
    assert "arm1" in text
    assert "-10.1 % [" in text
    assert "after 6 blocks" in text
    assert f"about {tally.decision.arms['arm1'].more_blocks}" in text
    assert tally.blocks == 6 + (tally.decision.more_blocks or 0) > 12


def test_what_is_expected_never_passes_the_cap() -> None:
    tally = Tally(the_plan(), StudyState())
    tally.take(BlockEnded(decided(6, 0.5)))
    assert tally.blocks == 30


def test_an_ended_study_expects_nothing_more() -> None:
    tally = Tally(the_plan(), StudyState())
    decision = decided(8, 0.001)
    assert decision.end is End.TARGET
    tally.take(BlockEnded(decision))
    assert tally.blocks == 8
    assert "none" in shown(tally)


@pytest.mark.parametrize(
    ("arm", "text"),
    [
        (Progress(0), "no block with both arm and baseline yet"),
        (Progress(1, -0.1), "-10.0 % after 1 block"),
        (Progress(8, -0.1, -0.12, -0.08, 4), "-10.0 % [-12.0, -8.0] after 8 blocks"),
    ],
)
def test_an_arm_so_far(arm: Progress, text: str) -> None:
    assert so_far(arm) == text


def test_without_a_terminal_each_look_is_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    _log(BlockEnded(decided(6, 0.04)), Tally(the_plan(), StudyState()))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["arm1", "baseline-again"]
    assert "more needed" in lines[0]
