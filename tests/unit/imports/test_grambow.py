"""The published files of grambow-2018 give the publication's Table 3."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.analyze import analyze
from tare.cli import app
from tare.imports import Import, collect, load_mapping
from tare.store import open_store

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data" / "grambow-2018"
MAPPING = ROOT / "studies" / "grambow-2018" / "import.yaml"
WITHIN = 0.002

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the published files (martingrambow/dockerExperiments) are not in ../shared/data"
)


@pytest.fixture(scope="module")
def imported() -> Import:
    return collect(load_mapping(MAPPING), DATA)


def test_every_file_is_a_good_run(imported: Import) -> None:
    assert len(imported.runs) == 360
    assert all(run.record.outcome.ok for run in imported.runs)


def test_the_publications_way_gives_its_table_to_within_a_fifth_of_a_point(imported: Import) -> None:
    analysis = analyze(imported.plan.study, [run.record for run in imported.runs])
    lines = [each for stratum in analysis.strata for each in stratum.findings] + list(analysis.findings)
    with_figure = [each for each in lines if each.published is not None]
    assert len(with_figure) == 24
    for finding in with_figure:
        assert finding.as_published is not None
        assert finding.as_published.point == pytest.approx(finding.published, abs=WITHIN), finding
    assert {each.as_published.n for each in with_figure if each.stratum and each.as_published} == {30}


def test_tares_own_estimate_has_an_interval_from_pairs_of_the_same_configuration(imported: Import) -> None:
    analysis = analyze(imported.plan.study, [run.record for run in imported.runs])
    ten, *_ = analysis.strata
    update = ten.finding("III", "update_latency_mean").estimate
    assert update.n == 30
    assert update.low is not None
    assert update.high is not None
    assert 0 < update.low < 0.05091 < update.high
    apart = [
        (stratum.levels["threads"], each.arm, each.metric)
        for stratum in analysis.strata
        for each in stratum.findings
        if each.published is not None and each.excludes_zero
    ]
    assert sorted(apart) == [
        (threads, arm, "update_latency_mean") for threads in ("10", "25") for arm in ("III", "IV")
    ]


def test_runs_in_which_reads_found_nothing_are_named(imported: Import) -> None:
    analysis = analyze(imported.plan.study, [run.record for run in imported.runs])
    (alarm,) = [each for each in analysis.alarms if each.rule == "errors"]
    assert alarm.arm == "III"
    assert len(alarm.runs) == 7


@pytest.mark.slow
def test_the_size_of_the_whole_study_is_imported_and_analysed(tmp_path: Path) -> None:
    """The published 360 twice, as another machine's: the size of the whole study."""
    for path in DATA.rglob("results-*.txt"):
        for machine in ("m3.medium", "m3.large"):
            name = path.name.replace("m3.medium_m3.medium", f"{machine}_{machine}")
            (tmp_path / "data" / machine).mkdir(parents=True, exist_ok=True)
            (tmp_path / "data" / machine / name).write_bytes(path.read_bytes())
    command = ["import", str(MAPPING), str(tmp_path / "data"), "--store", str(tmp_path / "store")]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert CliRunner().invoke(app, ["report", str(tmp_path / "store")]).exit_code == 0
    assert len(open_store(tmp_path / "store").records()) == 720
