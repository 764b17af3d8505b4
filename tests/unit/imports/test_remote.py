"""A directory of results at a URL is copied, imported and gone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import EnvironmentLacks, StudyError
from tare.imports import remote
from tare.imports.remote import fetched

REPORT = (Path(__file__).parents[2] / "data" / "imports" / "sysbench" / "cpu.txt").read_bytes()
URL = "memory://shared/kata"


@pytest.fixture
def bucket() -> Iterator[None]:
    """Four reports of two platforms in memory."""
    system = fsspec.filesystem("memory")
    for n, name in enumerate(("bare/1.log", "bare/2.log", "docker/1.log", "docker/2.log")):
        changed = REPORT.replace(b"3.0033s", f"3.003{n}s".encode())
        system.pipe(f"/shared/kata/{name}", changed)
    yield
    system.rm("/shared", recursive=True)


@pytest.mark.usefixtures("bucket")
def test_results_at_a_url_are_imported_like_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["import", URL])
    assert result.exit_code == 0, result.output
    assert f"`tare import kata.import.yaml {URL}`" in " ".join(result.output.split())
    result = CliRunner().invoke(app, ["import", "kata.import.yaml", URL])
    assert result.exit_code == 0, result.output
    assert "4 runs from 4 files: `tare report kata-store`" in result.output


@pytest.mark.usefixtures("bucket")
def test_the_copy_is_whole_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LARGEST", 3000)
    fsspec.filesystem("memory").pipe("/shared/kata/large.log", b"x" * 3001)
    with fetched(URL) as copy:
        assert copy.directory.name == "kata"
        names = sorted(path.relative_to(copy.directory).as_posix() for path in copy.directory.rglob("*.log"))
        assert names == ["bare/1.log", "bare/2.log", "docker/1.log", "docker/2.log"]
        assert copy.left_out == ("not read: large.log is larger than 0 MiB",)
    assert not copy.directory.exists()


@pytest.mark.usefixtures("bucket")
def test_what_cannot_be_copied_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StudyError, match="there is no file below memory://nothing"), fetched("memory://nothing"):
        pass
    with pytest.raises(StudyError, match="ftq:// cannot be read: Protocol not known"), fetched("ftq://x"):
        pass
    monkeypatch.setattr(remote, "_MOST_BYTES", 1000)
    with pytest.raises(StudyError, match="too much to copy"), fetched(URL):
        pass


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(EnvironmentLacks, match="needs another package") as error, fetched(URL):
        pass
    assert "tare-bench[import-url]" in (error.value.hint or "")
