"""A result of an emulated CPU bears its mark in every output; nothing here may show one without it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from tests.unit.analyze import synthetic
from tests.unit.stores import store_of
from typer.testing import CliRunner

import tare
from tare.cli import app
from tare.record.run_record import RunRecord
from tare.report import EXPORTERS
from tare.report.content import build_report, readable
from tare.report.in_full import with_details
from tare.study.model import Arm, Study

GUEST, BARE, HOST = "guestarm", "barearm", "hostarm"
LEVELS = {BARE: "none", GUEST: "machine", HOST: "engine"}
PEOPLE = ["terminal", "html", "md"]


def study(baseline: str = BARE) -> Study:
    names = [baseline, *(name for name in LEVELS if name != baseline)]
    arms = tuple(synthetic.arm(name).model_copy(update={"levels": {"place": LEVELS[name]}}) for name in names)
    return synthetic.study(names).model_copy(
        update={"arms": arms, "factors": {"place": tuple(LEVELS.values())}, "published": ()}
    )


def records(*, emulated: bool = True) -> list[RunRecord]:
    """Three arms, of which one ran with an emulated SUT."""
    made = synthetic.records(tuple(LEVELS), 5)
    return [
        record.model_copy(
            update={
                "run_id": f"b{record.block:02}-{record.position}",
                "levels": {"place": LEVELS[record.arm]},
                "path": None,
                "emulated": ("sut",) if emulated and record.arm == GUEST else (),
            }
        )
        for record in made
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_of(tmp_path / "store", records(), study())


def output_of(*words: str | Path, code: int | None = None) -> str:
    ended = CliRunner().invoke(app, [str(word) for word in words])
    assert code is None or ended.exit_code == code, ended.output
    return ended.stdout


def unmarked(text: str, name: str = GUEST, mark: str = "(emulated)") -> list[str]:
    """Each place that names the arm without its mark before it; line ends, in cells and labels too, set aside."""
    text = re.sub(r'</tspan><tspan x="0" dy="\d+">', " ", text)
    text = re.sub(rf"^({re.escape(mark)})(.*)\n(?={name})", r"\2\n\1 ", text, flags=re.MULTILINE)
    flat = " ".join(text.replace("\\(", "(").replace("\\)", ")").replace("\N{NO-BREAK SPACE}", " ").split())
    result = re.finditer(rf"(?<![-\w]){name}", flat)
    return [
        flat[max(0, one.start() - 40) : one.end() + 20]
        for one in result
        if not flat[: one.start()].endswith(f"{mark} ")
    ]


def as_text(style: str, whole: Study, made: Sequence[RunRecord]) -> str:
    report = with_details(build_report(whole, made), readable(whole, made)[1])
    text = EXPORTERS[style](report)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("style", PEOPLE)
def test_every_text_names_an_emulated_arm_with_its_mark_only(style: str) -> None:
    text = as_text(style, study(), records())
    assert GUEST in text
    assert unmarked(text) == []
    assert "Emulated: the SUT of (emulated) guestarm" in " ".join(text.replace("\\", "").split())


@pytest.mark.parametrize("style", PEOPLE)
def test_arms_against_an_emulated_baseline_are_marked_too(style: str) -> None:
    text = as_text(style, study(GUEST), records())
    assert unmarked(text) == []
    assert BARE in text
    assert unmarked(text, BARE, "(baseline emulated)") == []


@pytest.mark.parametrize("style", PEOPLE)
def test_nothing_is_marked_where_nothing_was_emulated(style: str) -> None:
    assert "mulated" not in as_text(style, study(), records(emulated=False))


def test_a_long_name_keeps_its_mark() -> None:
    long = "guestarm" + "x" * 10_000
    arms = tuple(arm.model_copy(update={"name": long}) if arm.name == GUEST else arm for arm in study().arms)
    whole = study().model_copy(update={"arms": arms})
    made = [one.model_copy(update={"arm": long}) if one.arm == GUEST else one for one in records()]
    for style in PEOPLE:
        assert unmarked(as_text(style, whole, made)) == []


def test_files_for_programs_have_a_key_and_keep_the_names(store: Path) -> None:
    findings = json.loads(output_of("report", store, "--format", "json"))
    marks = {one["arm"]: (one["emulated"], one["baseline_emulated"]) for one in findings["findings"]}
    assert {arm for arm, (own, baseline) in marks.items() if own or baseline} == {GUEST}
    assert marks[GUEST] == (["sut"], [])
    assert {one["arm"] for one in findings["arms"] if one["emulated"]} == {GUEST}
    for table in ("estimates", "observations"):
        csv = pl.read_csv(io.StringIO(output_of("report", store, "--format", "csv", "--table", table)))
        file = store.with_name(f"{table}.parquet")
        output_of("report", store, "--format", "parquet", "--table", table, "--output", file)
        for rows in (csv, pl.read_parquet(file)):
            assert set(rows.filter("emulated")["arm"]) == {GUEST}
            assert GUEST not in set(rows.filter(~pl.col("emulated"))["arm"])


def test_frames_have_the_column(store: Path) -> None:
    results = tare.open_store(store)
    guest = next(one for one in results.observations().filter("emulated")["run_id"])
    assert set(results.estimates().filter("emulated")["arm"]) == {GUEST}
    assert results.samples(guest).schema["emulated"] == pl.Boolean


def test_a_check_is_marked_in_all_its_forms(store: Path) -> None:
    junit, markdown = store.with_name("junit.xml"), store.with_name("check.md")
    words = ("check", store, "--max-overhead", "50%")
    text = output_of(*words, "--junit", junit, "--markdown", markdown)
    for result in (text, junit.read_text(), markdown.read_text()):
        assert GUEST in result
        assert unmarked(result) == []
    for file in (junit, markdown):
        file.unlink()
    held = json.loads(output_of(*words, "--json", "--junit", junit, "--markdown", markdown))["overheads"]
    assert {one["arm"]: one["emulated"] for one in held} == {GUEST: True, HOST: False}
    for file in (junit, markdown):
        assert GUEST in file.read_text()
        assert unmarked(file.read_text()) == []


def test_a_comparison_tells_in_which_store_it_was_emulated(store: Path) -> None:
    other = store_of(store.with_name("other"), records(emulated=False), study())
    for style in ("terminal", "md"):
        text = output_of("compare", store, other, "--format", style)
        assert GUEST in text
        assert unmarked(text, mark="(emulated in A)") == []
        both = output_of("compare", store, store_of(store.with_name(style), records(), study()), "--format", style)
        assert unmarked(both) == []
    changes = json.loads(output_of("compare", store, other, "--format", "json"))["changes"]
    of = {one["arm"]: one for one in changes}
    assert [of[GUEST][side]["emulated"] for side in ("a", "b", "difference")] == [True, False, True]
    assert not of[HOST]["difference"]["emulated"]


def test_an_arm_marked_like_another_stays_apart() -> None:
    odd = Arm(name=f"(emulated) {GUEST}", levels={"place": "odd"}, settings=study().arms[0].settings)
    whole = study().model_copy(update={"arms": (*study().arms, odd)})
    report = build_report(whole, records())
    assert len({arm.arm for arm in report.analysis.arms}) == len(whole.arms)
