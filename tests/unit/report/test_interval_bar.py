"""Bars of characters: what they show of a figure, and what they do not hide."""

from __future__ import annotations

import pytest

from tare.report.interval_bar import LETTERS, LINES, BarAxis, bar_axis, interval_bar, marks_for

AXIS = BarAxis(-5.0, 15.0, 20)


@pytest.mark.parametrize(
    ("figure", "drawn"),
    [
        ((8.0, 6.0, 10.0), "     |=====[-o-]"),
        ((8.0, None, None), "     |=======o"),
        ((0.5, -2.0, 3.0), "   [-o--]"),
        ((2.5, -2.0, 4.0), "   [-|-o-]"),
        ((-3.0, -4.0, -2.0), " [o]=|"),
        ((8.0, 6.0, 99.0), "     |=====[-o----->"),
        ((8.0, -99.0, 9.0), "<----|-------o]"),
        ((8.0, 8.0, 8.1), "     |=======o"),
    ],
)
def test_a_bar_goes_from_zero_to_the_interval_with_the_point_in_it(
    figure: tuple[float, float | None, float | None], drawn: str
) -> None:
    assert interval_bar(*figure, AXIS, LETTERS) == drawn
    assert len(interval_bar(*figure, AXIS, LINES)) == len(drawn)


def test_an_axis_holds_zero_all_points_and_intervals_but_no_interval_that_would_hide_the_rest() -> None:
    assert bar_axis([4.0, 6.0], [3.0, 7.0], 20) == BarAxis(0.0, 7.0, 20)
    assert bar_axis([-2.0], [-3.0, -1.0], 20) == BarAxis(-3.0, 0.0, 20)
    assert bar_axis([4.0, 6.0], [-900.0, 900.0], 20) == BarAxis(-6.0, 12.0, 20)
    assert interval_bar(0.0, 0.0, 0.0, bar_axis([0.0], [0.0], 20), LETTERS) == "o"


def test_a_stream_gets_marks_that_it_can_write() -> None:
    assert marks_for("utf-8") is LINES
    assert marks_for(None) is LINES
    assert marks_for("ascii") is LETTERS
    assert marks_for("latin-1") is LETTERS
    assert marks_for("no such encoding") is LETTERS
