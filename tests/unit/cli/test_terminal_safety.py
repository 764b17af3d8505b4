"""What others wrote reaches the terminal without control of it. Found by attack."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.store.conftest import make_plan, make_record
from typer.testing import CliRunner

from tare import cli
from tare.cli.study.progress import Tally, display, progress
from tare.errors import EnvironmentLacks, RunFailed, TareError
from tare.record.run_record import Outcome, Phase, RunRecord
from tare.run.events import Notice, RunEnded
from tare.run.resume import StudyState
from tare.store import resume_store

EVIL = "the server ended: \x1b]52;c;ZXZpbA==\x07\x1b[2J\u202egood"
PLAN = make_plan()


def failed() -> RunRecord:
    outcome = Outcome(ok=False, reason=EVIL, failed_in=Phase.MEASURE)
    return make_record(PLAN, 0, ok=False, outcome=outcome, notices=(EVIL,), raw=())


def is_harmless(text: str) -> bool:
    return "the server ended" in text and not {"\x1b", "\x07", "\u202e"} & set(text)


@pytest.mark.parametrize("quiet", [False, True])
def test_last_words_of_a_server_do_not_control_the_terminal(
    capsys: pytest.CaptureFixture[str], *, quiet: bool
) -> None:
    with progress(PLAN, StudyState(), quiet=quiet) as observer:
        observer(RunEnded(failed()))
        observer(Notice(EVIL))
    assert is_harmless(capsys.readouterr().err)


def test_nor_in_the_live_display() -> None:
    tally, console = Tally(PLAN, StudyState()), Console(force_terminal=True, color_system=None, width=200)
    tally.take(RunEnded(failed()))
    with console.capture() as captured:
        console.print(display(tally))
    assert is_harmless(captured.get())


@pytest.mark.parametrize("error", [RunFailed(EVIL), EnvironmentLacks("lacks", hint=EVIL), OSError(EVIL)])
def test_nor_in_the_error_of_a_command(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == (error.exit_code if isinstance(error, TareError) else 3)
    assert is_harmless(capsys.readouterr().err)


def test_lines_of_an_error_stay_lines_and_nesting_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise EnvironmentLacks("nothing was started:\n  - one\n  - \u00e9\u2026")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err == "tare: nothing was started:\n  - one\n  - \u00e9\u2026\n"
    monkeypatch.setattr(cli, "app", deep)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (2, "tare: a file is nested too deeply to be read\n")


def deep() -> None:
    deep()


def test_nor_of_a_failed_run_in_a_store_of_somebody_else(tmp_path: Path) -> None:
    with resume_store(tmp_path / "store", PLAN) as store:
        store.commit(failed())
    run = PLAN.runs[0].id
    result = CliRunner().invoke(cli.app, ["views", run, "--store", str(tmp_path / "store")])
    assert is_harmless(result.stderr)
