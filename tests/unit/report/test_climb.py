"""Latency over load in every format: one chart of all arms, and a table of their rates."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.test_climb import climbed
from tests.unit.report.printed import texts, titles

from tare.report import html_page, terminal
from tare.report.content import Report, build_report
from tare.report.markdown import markdown
from tare.report.sections.climb import climb
from tools.guide_charts import CHARTS, NAME, STALL, drawn, drawn_stall, kept, kept_stall, stall_in_words

ARMS = ("bare", "bridge")
BARE: Sequence[float | None] = [1.0, 2.0, 4.0, 4.5, 9.0, 80.0]
BRIDGE: Sequence[float | None] = [1.5, 3.0, 8.0, 40.0, 90.0, None]


def report(bare: Sequence[float | None] = BARE, bridge: Sequence[float | None] = BRIDGE) -> Report:
    made = [
        climbed(latencies, arm, block)
        for block in range(3)
        for arm, latencies in zip(ARMS, (bare, bridge), strict=True)
    ]
    return build_report(synthetic.study(ARMS), made)


def test_a_row_has_all_arms_at_one_rate_and_the_last_what_they_sustain() -> None:
    (section,) = climb(report())
    rows = texts(section)
    assert titles(section) == ("rate/s", "bare", "bridge")
    assert rows[0] == ("100", "1.00", "1.50")
    assert rows[-2] == ("600", "80.0", "- \N{DAGGER}")
    assert rows[-1] == ("sustained", "450/s", "250/s")
    assert "the bound is 5 ms" in section.note[0]


def test_of_many_rates_the_ends_are_kept_and_others_left_out() -> None:
    many = [1.0] * 20 + [9.0] * 20
    (section,) = climb(report(many, many))
    rows = texts(section)
    assert len(rows) == 13
    assert (rows[0][0], rows[-2][0]) == ("100", "4,000")


def test_every_format_shows_the_curves() -> None:
    made = report()
    page = html_page.render(made)
    assert '<h2 id="h-climb">Latency over load</h2>' in page
    assert page.count("Chart: latency over load, a line per arm. p99 within 5 ms held up to: bare up to 450/s") == 2
    assert "The p99 of latency at each target rate" in page
    assert "## Latency over load" in markdown.render(made)
    for width in (80, 120):
        assert "Latency over load" in terminal.render(made, width=width)


def test_arms_without_climbs_have_neither_chart_nor_table() -> None:
    made = build_report(synthetic.study(ARMS), synthetic.records(ARMS))
    assert list(climb(made)) == []
    assert "h-climb" not in html_page.render(made)
    assert "Latency over load" not in markdown.render(made)


def test_the_guide_shows_what_its_curves_say_and_what_reports_draw() -> None:
    assert (CHARTS / f"{NAME}.svg").read_text(encoding="utf-8") == drawn(kept()), "run `make guide-charts`"


def test_the_guide_s_stall_is_seen_by_the_open_loop_alone() -> None:
    curves = kept_stall()
    assert (CHARTS / f"{STALL}.svg").read_text(encoding="utf-8") == drawn_stall(curves), "run `make guide-charts`"
    closed, opened = curves.values()
    assert opened["99"] == pytest.approx(1900, rel=0.02)
    assert closed["99"] < 100
    assert "true 1,900 ms" in stall_in_words(curves)
