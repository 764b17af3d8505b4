"""The table of `bench.load`."""

from __future__ import annotations

from bench.load.__main__ import CASES, ratio, row


def test_ratios_are_of_pairs() -> None:
    assert ratio([2.0, 3.0, 4.0], [4.0, 4.0, 4.0]) == (0.75, 0.5, 1.0)


def test_a_row_says_whether_the_goal_is_met() -> None:
    case = CASES[0]
    assert row(case, [5.0, 6.0], [10.0, 10.0]) == (
        "| 50 connections | 5.50 | 10.00 | 0.55 (0.50 to 0.60) | 0.70: met |"
    )
    assert row(case, [9.0], [10.0]).endswith("0.70: missed |")
