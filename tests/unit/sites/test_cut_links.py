"""`tools/cut_links.py`: what it calls a fault, and a short run of it."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.cut_links import Outcome, main

LOST = "the agent on far ended during a request and was restarted"


def test_lost_doubled_and_unexplained_programs_are_faults() -> None:
    outcome = Outcome(5, Counter({0: 1, 1: 2}), {3: LOST, 4: "far cannot be reached"}, living=1)
    assert outcome.faults(may_fail=True) == [
        "program 1 ran 2 times",
        "program 2 is said to have run, and did not",
        "program 4 failed: far cannot be reached",
        "1 agents are left",
    ]
    assert f"program 3 failed: {LOST}" in outcome.faults(may_fail=False)


def test_cuts_lose_nothing_and_kills_fail_with_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cuts", "8", "--kills", "4"]) == 0, capsys.readouterr().err
    assert "8 cuts: " in capsys.readouterr().out
