"""The terminal table at two widths, with and without colour."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.analyze import synthetic
from tests.unit.approved import assert_as_approved

from tare.report import terminal
from tare.report.content import Report, build_report
from tare.report.figures import WITHIN_RESOLUTION

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "report"


def usual() -> Report:
    """Five blocks; one run failed for good, another once."""
    made = [each for each in synthetic.records() if (each.block, each.arm) != (2, "bridge")]
    lost = "sysbench: FATAL: mysql_drv_query() returned error 2013 (Lost connection)"
    made += [synthetic.record(2, "bridge", None, attempt=n, reason=lost) for n in (1, 2)]
    made[0] = made[0].model_copy(update={"attempt": 2})
    made.append(synthetic.record(made[0].block, made[0].arm, None, position=made[0].position))
    return build_report(synthetic.study(), made)


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_is_as_it_was_approved(width: int) -> None:
    text = terminal.render(usual(), width=width)
    assert_as_approved(text, GOLDEN / f"terminal-{width}.txt")


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in terminal.render(usual(), width=width).splitlines()) <= width


@pytest.mark.parametrize(("width", "lines"), [(120, 3), (40, 0)])
def test_a_mark_is_explained_where_a_column_shows_one(width: int, lines: int) -> None:
    """Two arms bear it in their p95 latency, for which a narrow terminal has no column."""
    text = terminal.render(usual(), width=width)
    assert sum(WITHIN_RESOLUTION in line for line in text.splitlines()) == lines


def test_without_colour_there_is_no_escape_sequence() -> None:
    assert "\x1b" not in terminal.render(usual(), width=80)


def test_with_colour_the_same_is_said() -> None:
    import re

    coloured = terminal.render(usual(), width=80, colour=True)
    assert "\x1b[1;31m" in coloured
    bare = "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines())
    assert bare == terminal.render(usual(), width=80).rstrip("\n")


def test_a_missing_interval_is_a_dash_and_is_explained_beneath() -> None:
    text = terminal.render(build_report(synthetic.study(blocks=2), synthetic.records(blocks=2)), width=120)
    assert "Every arm is without an interval: 2 blocks only; an interval needs 3." in text
    row = next(line for line in text.splitlines() if line.startswith("bridge "))
    assert row.count("—") == 2
    assert "Of throughput there is no interval: 2 blocks only; an interval needs 3." in " ".join(text.split())
    assert "Each t interval" not in text


def test_a_study_without_one_good_run_says_so() -> None:
    made = [synthetic.record(0, "bare", None), synthetic.record(0, "bridge", None, position=1)]
    text = terminal.render(build_report(synthetic.study(("bare", "bridge")), made), width=80)
    assert "There is no answer" in text
    assert "b00-0-bare, attempt 1, failed in measure: the client ended with 1" in text


def test_an_unfinished_study_says_how_far_it_is() -> None:
    text = terminal.render(build_report(synthetic.study(), synthetic.records(blocks=3)), width=80)
    assert "18 of 30 planned runs are done" in text


def test_arms_that_lack_the_same_are_named_together() -> None:
    made = [each for each in synthetic.records() if each.arm not in ("bridge", "host") or each.block < 2]
    text = terminal.render(build_report(synthetic.study(), made), width=200)
    assert "* host and bridge are without an interval: 2 blocks only; an interval needs 3." in text


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_still_names_the_arms(width: int) -> None:
    lines = terminal.render(usual(), width=width).splitlines()
    assert max(len(line) for line in lines) <= width
    table = lines[[line.startswith("arm ") for line in lines].index(True) :]
    named = [line.split()[0] for line in table if line.startswith(("bare ", "bridge ", "host "))]
    assert named[:3] == ["bare", "host", "bridge"]
