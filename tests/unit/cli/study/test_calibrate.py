"""`tare calibrate --show` on a machine of which something is known, and on one of which nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.calibrate.conftest import World
from typer.testing import CliRunner

from tare.calibrate.kinds import KINDS
from tare.calibrate.outcome import outcome
from tare.calibrate.summary import Effort, Identity, Summary, summarise
from tare.cli import app
from tare.cli.study.calibrate import KindName, _warn_of_load
from tare.cli.study.calibration_text import render
from tare.record.host_facts import HostFacts

HERE = Identity(cpu_model="A CPU", cpu_count=2, memory_gib=8, kernel="6.1", engine="docker", engine_version="20.10")


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    world = World(seed=3)
    seen = [
        each
        for name in ("work", "aa")
        for number in range(1, 5)
        for each in outcome(world.make(name, number, tmp_path))
    ]
    effort = Effort(studies=8, runs=320, failed=1, machine_s=1440.0, finished_at=1e9)
    return summarise(HERE, seen, effort, "0")


def test_the_table_has_every_figure(summary: Summary) -> None:
    text = render(summary, width=140)
    assert "2 \N{MULTIPLICATION SIGN} A CPU, 8 GiB, Linux 6.1, docker 20.10" in text
    assert "8 studies: 320 runs, 1 of them failed, 24 min 0 s of machine time." in text
    for word in ("all", "bare", "container", "work +1 %", "work +10 %", "in 1 min", "in 10 min", "in 60 min"):
        assert word in text
    assert "4 of 4" in text


def test_the_table_fits_a_narrow_terminal(summary: Summary) -> None:
    assert max(len(line) for line in render(summary, width=80).splitlines()) <= 80


def test_a_machine_of_which_nothing_is_known_is_shown_as_that(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["calibrate", "--show", "--home", str(tmp_path)])
    assert done.exit_code == 0
    assert "No study is finished yet" in done.stdout


def test_json_has_all_figures(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["calibrate", "--show", "--json", "--home", str(tmp_path)])
    document = json.loads(done.stdout)
    assert document["false_positives"] == {"count": 0, "of": 0, "share": None, "low": None, "high": None}
    assert document["effort"]["studies"] == 0


def test_every_kind_can_be_asked_for() -> None:
    assert [kind.value for kind in KindName] == list(KINDS)


@pytest.mark.parametrize(("load", "warned"), [(0.4, False), (7.5, True), (None, False)])
def test_a_busy_machine_is_warned_of(load: float | None, warned: bool, capsys: pytest.CaptureFixture[str]) -> None:
    _warn_of_load(HostFacts(load_1min=load, cpu_count=2))
    assert ("the load is 7.5 on 2 CPUs" in capsys.readouterr().err) is warned
