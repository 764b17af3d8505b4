"""`tare load` hands everything on to tare-load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.machine import load
from tare.errors import EnvironmentLacks


def test_arguments_streams_and_exit_code_are_the_program_s_own(tmp_path: Path) -> None:
    program = tmp_path / "tare-load"
    program.write_text('#!/bin/sh\necho "$@"\necho complaint >&2\nexit 4\n')
    program.chmod(0o755)
    script = (
        "from tare.cli import main; from tare.cli.machine import load; import sys\n"
        f"load.candidates = lambda _: ['/nowhere/tare-load', {str(program)!r}]\n"
        "sys.argv = ['tare', 'load', 'run', '--rate', '2', '--help']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("run --rate 2 --help\n", "complaint\n", 4)


def test_without_the_program_it_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "candidates", lambda _: [])
    done = CliRunner().invoke(app, ["load", "run"])
    assert isinstance(done.exception, EnvironmentLacks)
    assert "make setup" in str(done.exception)
