"""The guide on many sites: its study runs on fake sites as it says, and every option that it names is there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import preloaded

from tare.store import open_store

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "fleet.md"
MADE_UP = """
import sys
from functools import partial
from tare import cli
from tare.run.fleet import workers
workers.OwnWorkers = partial(workers.OwnWorkers, command=(sys.executable, "-m", "bench.fleet.made_up"))
cli.main()
"""


def commands() -> Iterator[list[str]]:
    """Each `$ tare …` of the guide, in words."""
    for line in re.findall(r"^\s*\$ (tare .*)$", GUIDE.read_text(), re.MULTILINE):
        yield shlex.split(line)


def called(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TARE_HOME": str(place / "home"), "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    env |= {"MADE_UP_S": "0", "COLUMNS": "200", "DOCKER_HOST": "unix:///nonexistent"}
    argv = [sys.executable, "-c", MADE_UP, *words]
    return preloaded.run(argv, cwd=place, env=env, timeout=240)


def test_its_study_runs_on_the_sites_of_its_file_and_is_reported(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    run, report = (
        next(words for words in commands() if words[1] == command and "--scheduler" not in words)
        for command in ("run", "report")
    )
    done = called(tmp_path, *run[1:])
    assert done.returncode == 0, done.stderr
    store = open_store(tmp_path / report[2])
    assert Counter(record.site for record in store.records()).keys() == {"rack-1", "rack-2"}
    output = called(tmp_path, *report[1:])
    assert output.returncode == 0, output.stderr
    assert "over 2 sites" in output.stdout


def command_of(words: list[str]) -> tuple[str, ...]:
    """The command with its subcommand, where it has some."""
    return tuple(words[1 : 3 if words[1] == "sites" else 2])


@pytest.mark.parametrize("command", sorted({command_of(words) for words in commands()}), ids=" ".join)
def test_each_option_that_it_names_is_one_of_the_command(tmp_path: Path, command: tuple[str, ...]) -> None:
    output = called(tmp_path, *command, "--help")
    assert output.returncode == 0, output.stderr
    named = {
        word for words in commands() if command_of(words) == command for word in words if word.startswith("--")
    }
    assert {option for option in named if not re.search(rf"{option}\b", output.stdout)} == set()
