from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.analyze import synthetic
from tests.unit.calibrate.conftest import Series, series_in

from tare.calibrate.archive import Archive
from tare.calibrate.outcome import ContrastResult
from tare.calibrate.pooled import smallest
from tare.calibrate.quote import NOT_CALIBRATED, quote, quote_for, sentences
from tare.calibrate.summary import Effort, Identity, identity_of, summarise
from tare.report import EXPORTERS
from tare.report.content import Report, build_report

HERE = identity_of(synthetic.HOST, synthetic.ENGINE)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """As everywhere, but each is made once for all tests of this file."""
    of, made = series_in(tmp_path_factory.mktemp("series")), dict[tuple[int, str], tuple[ContrastResult, ...]]()

    def once(studies: int, kinds: Sequence[str]) -> tuple[ContrastResult, ...]:
        key = (studies, ",".join(kinds))
        if key not in made:
            made[key] = of(studies, kinds)
        return made[key]

    return once


def kept(root: Path, series: Series, identity: Identity = HERE, at: float = 1.0, studies: int = 4) -> Archive:
    archive = Archive(root)
    effort = Effort(studies=studies, runs=9, failed=0, machine_s=9.0, finished_at=at)
    archive.keep(summarise(identity, series(studies, ["work"]), effort, "0"))
    return archive


def test_a_machine_that_nobody_calibrated_is_said_to_be_so(tmp_path: Path) -> None:
    assert quote(Archive(tmp_path), HERE) == NOT_CALIBRATED


def test_the_figures_are_quoted_with_their_intervals(tmp_path: Path, series: Series) -> None:
    quoted = quote(kept(tmp_path, series), HERE)
    assert quoted.startswith("On this machine 4 A/A comparisons gave 0.0 % false positives [0.0, 60.2]")
    assert "work +5 % 4 of 4" in quoted
    assert "made under" not in quoted


def test_bias_and_the_smallest_loss_that_can_be_shown_are_quoted_too(tmp_path: Path, series: Series) -> None:
    archive = kept(tmp_path, series)
    (summary,) = archive.summaries(HERE.machine_key)
    quoted = quote(archive, HERE)
    five = next(each for each in summary.injections if each.injection == "work +5 %")
    assert f"work +5 % 4 of 4, bias {100 * (five.bias.point or 0):+.2f}" in quoted
    shown = [f"{100 * (each.overhead or 0):.1f} % in {each.minutes:g} min" for each in summary.smallest[1:]]
    assert len(shown) == 2
    assert all(part in quoted for part in shown)
    assert "half of all studies" in quoted


def test_a_loss_that_cannot_be_shown_so_soon_is_said_to_be_none(tmp_path: Path, series: Series) -> None:
    (summary,) = kept(tmp_path, series).summaries(HERE.machine_key)
    slow = [smallest(0.02, 30.0, minutes) for minutes in (1, 10, 60)]
    assert "none in 1 min, " in sentences(summary.model_copy(update={"smallest": tuple(slow)}))
    assert "smallest" not in sentences(summary.model_copy(update={"smallest": ()}))


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(synthetic.study(), synthetic.records())


@pytest.fixture(scope="module")
def longest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A quotation with all kinds of effects, and of other versions."""
    place = tmp_path_factory.mktemp("calibrated")
    old = HERE.model_copy(update={"kernel": "5.10.0", "engine_version": "18.09.1+dfsg1-7.1+deb10u3"})
    archive = Archive(place)
    effort = Effort(studies=60, runs=9, failed=0, machine_s=9.0, finished_at=1.0)
    archive.keep(summarise(old, series_in(place)(12), effort, "0"))
    return quote(archive, HERE)


@pytest.mark.parametrize("form", ["terminal", "md", "html", "json"])
def test_no_report_cuts_the_quotation_off(form: str, report: Report, longest: str) -> None:
    quoting = replace(report, calibration=longest)
    text = " ".join(EXPORTERS[form](quoting).replace("\\", "").replace("\N{NO-BREAK SPACE}", " ").split())
    assert "deb10u3" in text


def test_other_versions_are_quoted_and_named(tmp_path: Path, series: Series) -> None:
    old = HERE.model_copy(update={"kernel": "5.10.0"})
    quoted = quote(kept(tmp_path, series, old), HERE)
    assert quoted.endswith("That calibration was made under kernel 5.10.0.")
    newer = HERE.model_copy(update={"engine_version": "28.0"})
    kept(tmp_path, series, newer, at=2.0)
    assert quote(Archive(tmp_path), HERE).endswith("That calibration was made under docker 28.0.")


def test_the_same_versions_are_quoted_though_others_are_later(tmp_path: Path, series: Series) -> None:
    kept(tmp_path, series)
    archive = kept(tmp_path, series, HERE.model_copy(update={"kernel": "7.0"}), at=2.0)
    assert "made under" not in quote(archive, HERE)


def test_another_machine_is_not_quoted(tmp_path: Path, series: Series) -> None:
    archive = kept(tmp_path, series, HERE.model_copy(update={"cpu_model": "Another"}))
    assert quote(archive, HERE) == NOT_CALIBRATED


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, series: Series) -> None:
    archive = kept(tmp_path, series)
    (archive.directory(HERE) / "summary.json").write_text("{")
    assert quote(archive, HERE) == NOT_CALIBRATED


@pytest.mark.parametrize("form", ["terminal", "md", "html", "json"])
def test_every_report_quotes_the_calibration(form: str, report: Report, tmp_path: Path, series: Series) -> None:
    kept(tmp_path, series)
    quoted = quote_for(synthetic.records(), tmp_path)
    assert quoted is not None
    assert "4 A/A comparisons" not in EXPORTERS[form](report)
    assert "4 A/A comparisons" in EXPORTERS[form](replace(report, calibration=quoted)).replace("\\", "")


def test_a_study_without_runs_quotes_nothing(tmp_path: Path) -> None:
    assert quote_for([], tmp_path) is None
