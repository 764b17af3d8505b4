"""Temporary directories of a killed tare are in the ledger, and go with the next tare or the next clean."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from tests import preloaded
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import EnvironmentLacks
from tare.sites.layout import ENV, default_layout
from tare.sites.scratch import make_scratch, remove_scratch, scratch_directory
from tare.sites.sqlite_ledger import SqliteLedger

_KILLED = """
import os, signal, sys
from tare.sites.layout import default_layout
from tare.sites.scratch import make_scratch
from tare.sites.sqlite_ledger import SqliteLedger
path = make_scratch(SqliteLedger(default_layout().ledger), sys.argv[1])
(path / "engine.sock").write_text("x")
print(path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteLedger:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv(ENV, str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)  # what TMPDIR says is kept by the first who asks
    return SqliteLedger(default_layout().ledger)


def of_a_killed_tare(purpose: str) -> Path:
    argv = [sys.executable, "-c", _KILLED, purpose]
    left = Path(preloaded.run(argv, timeout=60).stdout.strip())
    assert (left / "engine.sock").exists()
    return left


def test_a_directory_is_noted_while_it_is_there_and_nobody_else_may_enter_it(ledger: SqliteLedger) -> None:
    with scratch_directory(ledger, "engine") as path:
        assert [entry.ident for entry in ledger.entries()] == [str(path)]
        assert path.stat().st_mode & 0o777 == 0o700
        (path / "deep").mkdir()
    assert not path.exists()
    assert ledger.entries() == ()


def test_clean_after_kill_nine_leaves_none(ledger: SqliteLedger, tmp_path: Path) -> None:
    left = {of_a_killed_tare("engine"), of_a_killed_tare("site")}
    assert left <= set((tmp_path / "tmp").iterdir())
    result = CliRunner().invoke(app, ["clean", "--yes"])
    assert result.exit_code == 0, result.stderr
    assert all(f"removed path {path} on local" in result.stdout for path in left)
    assert not [path for path in (tmp_path / "tmp").iterdir() if path.name.startswith("tare-")]
    assert ledger.entries() == ()


def test_the_next_of_the_same_purpose_removes_those_of_the_dead_alone(ledger: SqliteLedger) -> None:
    dead, other = of_a_killed_tare("engine"), of_a_killed_tare("site")
    living = make_scratch(ledger, "engine")
    with scratch_directory(ledger, "engine"):
        assert not dead.exists()
        assert other.exists()
        assert living.exists()
    assert {entry.ident for entry in ledger.entries()} == {str(other), str(living)}
    remove_scratch(ledger, living)


def test_where_none_can_be_made_one_sentence_says_so_and_nothing_is_noted(
    ledger: SqliteLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(EnvironmentLacks, match=r"^no directory for temporary files can .*: No such file"):
        make_scratch(ledger, "engine")
    assert ledger.entries() == ()
