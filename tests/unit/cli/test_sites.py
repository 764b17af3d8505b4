"""`--sites` and `--site`: what is wrong is a sentence before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import EnvironmentLacks, StudyError

TWO = """\
format: 1
sites:
  - {name: pair, sut: {ssh: a}, client: {ssh: b}}
  - {name: one, sut: {ssh: a}, client: {ssh: a}}
"""
CALLS = (
    ["plan", "percona-2016"],
    ["calibrate", "--show"],
    ["run", "percona-2016", "--store", "store"],
    ["doctor"],
    ["clean", "--yes"],
)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    (tmp_path / "sites.yaml").write_text(TWO)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--site", "pair"], "--site needs --sites FILE"),
        (["--sites", "none.yaml"], "cannot read none.yaml: No such file"),
        (["--sites", "sites.yaml", "--site", "pear"], "sites.yaml has no site 'pear' (did you mean \"pair\"?)"),
    ],
)
def test_a_site_that_is_not_there_is_told(
    call: list[str], options: list[str], sentence: str, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, [*call, *options])
    assert isinstance(done.exception, StudyError)
    assert sentence in str(done.exception)
    assert not (tmp_path / "store").exists()


def test_a_site_of_one_host_is_refused_before_it_is_reached(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "percona-2016", "--sites", "sites.yaml", "--site", "one"])
    assert isinstance(done.exception, StudyError)
    assert "the site one has one host for both parts, where no study can run yet" in str(done.exception)


def test_hosts_do_not_change_places_on_several_sites_at_once(tmp_path: Path) -> None:
    (tmp_path / "sites.yaml").write_text(TWO.replace("client: {ssh: b}}", "client: {ssh: b}, swap: true}"))
    done = CliRunner().invoke(app, ["run", "percona-2016", "--scale", "demo", "--sites", "sites.yaml"])
    assert isinstance(done.exception, StudyError)
    assert "the site pair has `swap`, which does not work with several sites at once" in str(done.exception)


def test_several_sites_are_looked_at_before_any_is_reached(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "percona-2016", "--scale", "demo", "--sites", "sites.yaml"])
    assert isinstance(done.exception, StudyError)
    assert "the site one has one host for both parts" in str(done.exception)
    assert not list(tmp_path.glob("*-store"))


def test_a_host_out_of_reach_is_one_sentence_and_no_store(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host *\n  HostName 127.0.0.1\n  Port 1\n")
    config = f"ssh_config: {tmp_path}/config"
    text = TWO.replace("{ssh: a}", f"{{ssh: a, {config}}}").replace("{ssh: b}", f"{{ssh: b, {config}}}")
    (tmp_path / "sites.yaml").write_text(text)
    done = CliRunner().invoke(
        app, ["run", "percona-2016", "--scale", "demo", "--sites", "sites.yaml", "--site", "pair"]
    )
    assert isinstance(done.exception, EnvironmentLacks)
    assert "a cannot be reached: ssh: connect to host 127.0.0.1 port 1" in str(done.exception)
    assert not list(tmp_path.glob("*-store"))
