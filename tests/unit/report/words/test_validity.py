"""Broken rules of validity, as reports tell them."""

from __future__ import annotations

from tests.unit.analyze import synthetic

from tare.analyze.validity import Alarm
from tare.report import findings_file, html_page, terminal
from tare.report.content import build_report
from tare.report.markdown import markdown
from tare.report.words.notes import warnings


def test_the_same_of_several_arms_is_said_once() -> None:
    alarms = [Alarm("few-blocks", arm, "5 blocks", (), "run more") for arm in ("bridge", "host")]
    assert warnings(alarms) == ("few-blocks, bridge and host: 5 blocks. To do: run more.",)


def test_runs_are_named_and_a_long_list_is_counted() -> None:
    (warning,) = warnings([Alarm("clock-step", None, "the clock was set", tuple("abcdefgh"), "run them again")])
    assert (
        warning
        == "clock-step, every arm: the clock was set. Runs: a, b, c, d, e, f and 2 more. To do: run them again."
    )


def test_every_report_tells_the_broken_rules() -> None:
    report = build_report(synthetic.study(), synthetic.records())
    for text in (
        terminal.render(report),
        markdown.render(report),
        html_page.render(report),
        findings_file.render(report),
    ):
        assert "few-blocks" in text


def test_a_clean_study_has_no_list() -> None:
    report = build_report(synthetic.study(blocks=10), synthetic.records(blocks=10))
    assert report.analysis.alarms == ()
    assert "No validity rule is broken" in html_page.render(report)
    assert "Validity" not in terminal.render(report)
