"""What of single runs and of runs under way is shown bears the mark of an emulated CPU too."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.analyze import synthetic
from tests.unit.analyze.test_knee import COUNTS, runs
from tests.unit.analyze.views.test_of_run import ARMS, store_with
from tests.unit.run.conftest import make_plan

from tare.analyze.knee import Knee, knee_of
from tare.analyze.views.summary import views_of_run
from tare.cli.study.progress import Tally, display
from tare.cli.study.sweep import render as sweep_text
from tare.report import EXPORTERS
from tare.report.content import build_report, readable
from tare.report.in_full import in_full
from tare.report.views import files as views_files
from tare.report.views import table as views_table
from tare.run.events import Emulated, RunEnded, RunStarted
from tare.run.resume import StudyState
from tare.store import Store

GUEST = ARMS[1]
MARKED = f"(emulated) {GUEST}"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_with(tmp_path / "store")


def test_views_of_an_emulated_run_say_so(store: Store) -> None:
    run = store.records()[0].model_copy(update={"emulated": ("sut", "client")})
    run_views = views_of_run(store, run).views
    assert "Emulated: the SUT and client of this run" in views_table.render(run_views)
    assert json.loads(views_files.as_json(run_views))["emulated"] == ["sut", "client"]
    assert {row["emulated"] for row in csv.DictReader(io.StringIO(views_files.as_csv(run_views)))} == {"True"}


@pytest.mark.parametrize("style", ["html", "md"])
def test_single_runs_bear_the_mark_of_their_arm(style: str, store: Store) -> None:
    made = [
        each.model_copy(update={"emulated": ("sut",) if each.arm == GUEST else (), "path": None})
        for each in store.records()
    ]
    report = in_full(build_report(store.plan.study, made), store, readable(store.plan.study, made)[1])
    assert report.laid_over is not None
    assert report.timelines is not None
    assert {run.arm for run in report.laid_over.runs} == {ARMS[0], MARKED}
    assert {run.arm for run in report.timelines.runs} == {ARMS[0], MARKED}
    text = EXPORTERS[style](report)
    assert isinstance(text, str)
    flat = " ".join(text.replace("\\", "").split())
    assert flat.count(MARKED) > 5


def sweep(*sides: str) -> Knee:
    study = synthetic.study(tuple(f"threads-{n}" for n in COUNTS))
    arms = [arm.model_copy(update={"levels": {"threads": arm.name[8:]}}) for arm in study.arms]
    made = [each.model_copy(update={"emulated": sides}) for each in runs(lambda n: min(100.0 * n, 800.0))]
    return knee_of(study.model_copy(update={"arms": tuple(arms)}), made)


def test_a_sweep_says_what_was_emulated() -> None:
    text = sweep_text("Which?", "transactions", sweep("sut"))
    assert text.startswith("(emulated) Which?")
    assert "Emulated: the SUT ran on an emulated CPU" in text
    assert "(emulated) Full load: 8 threads" in text
    assert "mulated" not in sweep_text("Which?", "transactions", sweep())


def test_progress_names_an_arm_with_its_mark_from_the_moment_it_is_known() -> None:
    plan = make_plan(arms=ARMS)
    first = next(run for run in plan.runs if run.arm == GUEST)
    tally = Tally(plan, StudyState(), clock=lambda: 0.0)
    tally.take(RunStarted(first, 1))

    def shown() -> str:
        out = io.StringIO()
        Console(file=out, width=100).print(display(tally))
        return out.getvalue()

    assert MARKED not in shown()
    tally.take(Emulated(first, ("sut",)))
    assert MARKED in shown()
    record = synthetic.record(1, GUEST, 100.0).model_copy(update={"emulated": ("sut",)})
    tally.take(RunEnded(record))
    assert shown().count(MARKED) >= 2
