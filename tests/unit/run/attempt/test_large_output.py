"""Programs that print far more than is of use cost neither memory nor the study. Found by attack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tare.databases import Secrets
from tare.deployments.vm.guest import words_of
from tare.errors import RunFailed
from tare.run.attempt import raw_files
from tare.run.attempt.death import last_output
from tare.run.attempt.directory import MOST_OUTPUT_BYTES, WorkDirectory
from tare.run.attempt.raw_files import redact
from tare.sites import Output
from tare.sites.local import LocalHost
from tare.sites.reading import LAST_BYTES, ending

WHOLE_BYTES = 48 << 20
"""Twice what the program below may have beside itself."""
_REDACT = """
import resource, sys
from pathlib import Path
from tare.databases import Secrets
from tare.run.attempt.raw_files import redact
most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (24 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
redact(Path(sys.argv[1]), Secrets("tare", "p" * 48, None))
"""


def test_a_large_output_is_masked_without_being_in_memory_as_a_whole(tmp_path: Path) -> None:
    with (tmp_path / "sut.stderr").open("wb") as file:
        file.truncate(WHOLE_BYTES)
        file.seek(0, 2)
        file.write(b"p" * 48)
    subprocess.run([sys.executable, "-c", _REDACT, str(tmp_path)], check=True, timeout=200)
    with (tmp_path / "sut.stderr").open("rb") as file:
        file.seek(WHOLE_BYTES)
        assert file.read() == b"[password]"
    assert [path.name for path in tmp_path.iterdir()] == ["sut.stderr"]


@pytest.mark.parametrize("before", range(60))
def test_a_password_across_two_pieces_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(raw_files, "_PIECE_BYTES", 50)
    password = "0123456789abcdef" * 3
    text = f"{'x' * before}{password}{password}{'y' * (60 - before)}{password[:-1]}"
    (tmp_path / "out").write_text(text)
    (tmp_path / "out").chmod(0o640)
    redact(tmp_path, Secrets("tare", password, None))
    assert (tmp_path / "out").read_text() == text.replace(password, "[password]")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def test_a_file_of_a_client_that_is_larger_than_what_is_read_fails_the_run_uncopied(tmp_path: Path) -> None:
    work = WorkDirectory(LocalHost(), str(tmp_path / "work"))
    (tmp_path / "work" / "raw").mkdir(parents=True)
    for name in ("measure.stdout", "measure.stderr"):
        (tmp_path / "work" / "raw" / name).touch()
    assert work.bring_output("measure", tmp_path / "staging", ())
    with (tmp_path / "work" / "raw" / "measure.stdout").open("wb") as file:
        file.truncate(MOST_OUTPUT_BYTES + 1)
    with pytest.raises(RunFailed, match="has 268435457 bytes, and tare reads 256 MiB at most"):
        work.bring_output("measure", tmp_path / "other", ())
    assert not (tmp_path / "other" / "measure.stdout").exists()


def test_the_last_words_of_a_server_are_read_from_the_end_of_its_output(tmp_path: Path) -> None:
    output = Output(str(tmp_path / "sut.stdout"), str(tmp_path / "sut.stderr"))
    with (tmp_path / "sut.stderr").open("wb") as file:
        file.truncate(64 << 30)
        file.seek(0, 2)
        file.write(b"\nno space left\n")
    assert ending(LocalHost(), output.stderr)[-15:] == b"\nno space left\n"
    assert len(ending(LocalHost(), output.stderr)) == LAST_BYTES
    assert last_output(LocalHost(), output).endswith("no space left")
    assert ending(LocalHost(), output.stdout) == b""
    assert (words_of(LocalHost(), output.stderr) or "").endswith(" / no space left")
