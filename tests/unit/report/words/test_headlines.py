"""What stands above the answer, in every format."""

from __future__ import annotations

import csv
import io
import json

import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.validity.test_control import controlled, records

from tare.report import EXPORTERS
from tare.report.content import build_report
from tare.run.ending import ArmWidth, Ending
from tare.study.protocol_spec import BucketsSpec

SOUND = build_report(controlled(), records(0.002))
INVALID = build_report(controlled(), records(0.03))
FORMATS = ["terminal", "html", "md"]


def flat(text: str) -> str:
    """Without line breaks, Markdown's escapes and typography."""
    return " ".join(text.replace("\\", "").replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.mark.parametrize("style", FORMATS)
def test_the_control_s_interval_stands_above_the_answer(style: str) -> None:
    text = flat(EXPORTERS[style](SOUND))
    assert "Control: baseline-again, a second instance of bare:" in text
    assert text.index("second instance of bare") < text.index("% intervals, ")
    assert "it could hide ±" in text
    assert "INVALID" not in text


@pytest.mark.parametrize("style", FORMATS)
def test_an_invalid_study_says_so_above_everything_else(style: str) -> None:
    text = flat(EXPORTERS[style](INVALID))
    assert "INVALID (control-differs)" in text
    assert text.index("INVALID") < text.index("% intervals, ")


def test_programs_are_told_as_well() -> None:
    document = json.loads(EXPORTERS["json"](INVALID))
    assert (document["valid"], document["control"]["differs"], document["control"]["arm"]) == (
        False,
        True,
        "baseline-again",
    )
    rows = list(csv.DictReader(io.StringIO(EXPORTERS["csv"](INVALID))))
    assert {row["valid"] for row in rows} == {"false"}
    assert {row["arm"] for row in rows if row["control"] == "true"} == {"baseline-again"}
    assert json.loads(EXPORTERS["json"](SOUND))["valid"] is True


def test_the_answer_is_not_about_the_control() -> None:
    assert "baseline-again" not in INVALID.answer


@pytest.mark.parametrize("style", FORMATS)
def test_a_published_baseline_is_marked(style: str) -> None:
    study = controlled().model_copy(update={"protocol": BucketsSpec(name="buckets")})
    assert "its intervals are too narrow" in flat(EXPORTERS[style](build_report(study, records(0.0))))


def test_a_published_baseline_is_marked_for_programs_too() -> None:
    study = controlled().model_copy(update={"protocol": BucketsSpec(name="buckets")})
    for whole, marked in ((study, True), (controlled(), False)):
        report = build_report(whole, records(0.0))
        assert json.loads(EXPORTERS["json"](report))["published_baseline"] is marked
        rows = list(csv.DictReader(io.StringIO(EXPORTERS["csv"](report))))
        assert {row["published_baseline"] for row in rows} == {str(marked).lower()}


def test_without_a_control_that_is_said() -> None:
    assert build_report(synthetic.study(), []).headlines[0].text.startswith("No control")


def test_before_an_interval_the_control_says_why_there_is_none() -> None:
    trust, headline = build_report(controlled(), records(0.0, blocks=2)).headlines
    assert trust.text.startswith("Too noisy to decide: no arm has an interval.")
    assert "no interval for baseline-again against bare, 2 blocks only" in headline.text
    assert not headline.grave


def test_why_it_ended_is_told_and_blocks_that_are_not_needed_are_not_missing() -> None:
    ending = Ending(
        reason="time", blocks=8, machine_s=60.0, target=0.02,
        arms={"bridge": ArmWidth(n=8, low=-0.14, high=-0.08, half_width=0.03)},
    )  # fmt: skip
    report = build_report(controlled(), records(0.0), planned=120, ending=ending)
    assert report.planned == 24
    assert report.notes[0] == (
        "Stopped at the time limit after 8 blocks; widest interval ±3 % (bridge), the target was ±2 %."
    )
    assert not any("resumes with the rest" in note for note in report.notes)


@pytest.mark.parametrize(("half_width", "text"), [(0.0271, "±2.7 %"), (0.994, "±99 %"), (2.138, "±214 %")])
def test_a_wide_interval_is_written_out(half_width: float, text: str) -> None:
    arm = ArmWidth(n=3, low=-half_width, high=half_width, half_width=half_width)
    ending = Ending(reason="time", blocks=3, machine_s=60.0, target=0.02, arms={"bridge": arm})
    assert f"widest interval {text} (bridge), the target" in ending.why
