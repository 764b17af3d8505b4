"""An arm without a good run is said to have no result, before anything about its intervals."""

from __future__ import annotations

from tests.unit.analyze import synthetic

from tare.analyze.analysis import analyze
from tare.analyze.metrics import PRIMARY
from tare.record.run_record import RunRecord
from tare.report.words.answer import why_no_interval
from tare.report.words.notes import notes

ARMS = ("bare", "host", "bridge")


def with_failed(*arms: str) -> list[RunRecord]:
    return [
        synthetic.record(each.block, each.arm, None, position=each.position) if each.arm in arms else each
        for each in synthetic.records(ARMS, blocks=2)
    ]


def test_an_arm_whose_runs_all_failed_has_no_result_rather_than_no_interval() -> None:
    texts = notes(analyze(synthetic.study(ARMS), with_failed("bridge")), 6)
    assert texts[0] == "bridge has no result: every attempt failed."
    assert not [text for text in texts if "bridge" in text and "without an interval" in text]
    assert [text for text in texts if text.startswith("host is without an interval")]


def test_without_any_good_run_no_interval_is_spoken_of() -> None:
    analysis = analyze(synthetic.study(ARMS), with_failed(*ARMS))
    assert notes(analysis, 6)[0] == "bare, host and bridge have no result: every attempt failed."
    assert why_no_interval(analysis, PRIMARY) in (None, "there is no result: no arm has a good run")
    assert not [text for text in notes(analysis, 6) if "without an interval" in text]
