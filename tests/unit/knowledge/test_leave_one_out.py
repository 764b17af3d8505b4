"""No study is predicted from itself, and every one of the five is in the table."""

from __future__ import annotations

import pytest

from tare.knowledge.claim import load_claims
from tools.leave_one_out import FIVE, main


def test_each_study_is_predicted_from_claims_of_others_only(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    table, scores = capsys.readouterr().out.split("\n\n")
    _, _, *rows = table.splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert {study for study, *_ in cells} == set(FIVE)
    own = {known.id: known.study for known in load_claims()}
    for study, _, _, *predicted in cells:
        cited = [name for name in own if any(name in each for each in predicted)]
        assert study not in {own[name] for name in cited}

    assert "| all | 30 | 27 | " in scores  # as docs/journal/predictions.md has it


def test_what_was_found_is_what_the_journal_says(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    (port,) = [row for row in capsys.readouterr().out.splitlines() if "published-loopback" in row]
    assert "-69.0 %" in port
    assert "nothing comparable | -55.4 %, no interval (moby-11911-published-port)" in port
