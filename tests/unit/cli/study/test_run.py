"""What `tare run` refuses leaves nothing behind."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer
from tests.unit.live.conftest import commit, plan_of
from tests.unit.record.parts import between
from tests.unit.store.conftest import make_record
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.study import running
from tare.errors import EnvironmentLacks, StudyError
from tare.run.interrupts import Interrupted
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store import open_store, resume_store


def test_a_home_that_cannot_be_made_is_told_before_there_is_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    monkeypatch.setenv("TARE_HOME", str(file / "home"))
    store = tmp_path / "store"
    actual = CliRunner().invoke(app, ["run", "percona-2016", "--scale", "demo", "--store", str(store)])
    assert isinstance(actual.exception, EnvironmentLacks)
    (result,) = [line for line in str(actual.exception).splitlines() if str(file) in line]
    why = f"{file}/home cannot be made: {file} is not a directory"
    assert (
        result
        == f"  - home, needed by every run (all 7 arms): {why}; set TARE_HOME to a directory that you may write to"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (0, "; cleaned up. The same command resumes"),
        (1, "; not removed: container tare-0 on local; remove with `tare clean`. The same command resumes"),
        (7, "tare-2 on local and 2 more; remove with `tare clean`. The same command resumes"),
    ],
)
def test_what_an_interrupted_study_could_not_remove_is_named(
    left: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        ledger = SqliteLedger(default_layout().ledger)
        ledger.note(Kind.IMAGE, "cached", keep=True)
        for number in range(left):
            ledger.note(Kind.CONTAINER, f"tare-{number}")
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(running, "_site_for", lambda *_, fleet: nullcontext())
    monkeypatch.setattr(running, "_run", interrupted)
    with pytest.raises(typer.Exit) as ended, running.run_plan(plan_of(), tmp_path / "store", quiet=True):
        pass
    assert ended.value.exit_code == 128 + signal.SIGTERM
    assert message in capsys.readouterr().err


def test_a_study_of_two_hosts_does_not_go_on_on_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, store = plan_of(), tmp_path / "store"
    with resume_store(store, plan) as writer:
        commit(writer, make_record(plan, 0, site="rack", between=between("db", "load")))
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(running, "_site_for", lambda *_, fleet: nullcontext())
    monkeypatch.setattr(running, "execute", lambda *_: pytest.fail("a run was begun"))
    with (
        pytest.raises(StudyError, match="were made on the site rack, not on this machine alone"),
        running.run_plan(plan, store, quiet=True),
    ):
        pass
    assert len(open_store(store).records()) == 1
