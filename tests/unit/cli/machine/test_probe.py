"""`tare probe` hands everything on to tare-probe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.machine import probe
from tare.errors import EnvironmentLacks


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["record", "--out", "x", "--host"], ["record", "--out", "x", "--host"]),
        (["--prometheus", ":9477", "--host"], ["serve", "--prometheus", ":9477", "--host"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
        (["export", "--help"], ["export", "--help"]),
        ([], ["--help"]),
    ],
)
def test_options_without_a_command_are_those_of_serve(given: list[str], meant: list[str]) -> None:
    assert probe.arguments(given) == meant


def test_arguments_streams_and_exit_code_are_the_program_s_own(tmp_path: Path) -> None:
    program = tmp_path / "tare-probe"
    program.write_text('#!/bin/sh\necho "$@"\necho complaint >&2\nexit 3\n')
    program.chmod(0o755)
    script = (
        "from tare.cli import main; from tare.cli.machine import probe; import sys\n"
        f"probe.candidates = lambda _: ['/nowhere/tare-probe', {str(program)!r}]\n"
        "sys.argv = ['tare', 'probe', 'live', '--hz', '2', '--help']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("live --hz 2 --help\n", "complaint\n", 3)


def test_without_the_program_it_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "candidates", lambda _: [])
    done = CliRunner().invoke(app, ["probe", "live"])
    assert isinstance(done.exception, EnvironmentLacks)
    assert "make setup" in str(done.exception)
