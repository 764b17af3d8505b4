"""The page beside a run: a process that ends with it, and whose failure is nobody's."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.unit.live.conftest import fill, plan_of

from tare.cli.study.serve import page_beside
from tare.errors import EnvironmentLacks
from tare.live.serving import open_listener, serve_beside
from tare.store import resume_store

TOKEN = "a-token"
UP_S = 280.0
"""A machine that is measured meanwhile has little time for tests."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    plan = plan_of()
    with resume_store(tmp_path / "store", plan) as writer:
        fill(writer, plan, (0,))
    return tmp_path / "store"


def status(url: str) -> int:
    """Of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=UP_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.timeout(600)
def test_the_page_is_there_while_the_run_is_and_then_its_process_is_gone(store: Path) -> None:
    with serve_beside(store, 0, TOKEN) as door:
        assert status(door.link) == 200
        assert status(f"http://127.0.0.1:{door.port}/") == 403
        link = door.link
    with pytest.raises(urllib.error.URLError):
        status(link)


def test_a_page_that_crashes_or_hangs_is_left_behind(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.live.serving._END_S", 0.5)
    for program in (("-c", "raise SystemExit(1)"), ("-c", "import time; time.sleep(900)")):
        with serve_beside(store, 0, TOKEN, program=program):
            pass


def test_a_port_in_use_is_told_and_the_run_goes_on(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = False
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentLacks, match="another port"):
            open_listener(port, TOKEN)
        with page_beside(store, wanted=True, port=port):
            ran = True
    assert ran
    assert "the run continues without its page" in capsys.readouterr().err


def test_a_run_that_fails_is_not_taken_for_a_page_that_does(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match="of the run"), page_beside(store, wanted=True, port=0):
        raise OSError("of the run")
    assert "without its page" not in capsys.readouterr().err


def test_the_page_listens_on_loopback_only() -> None:
    with open_listener(0, TOKEN).socket as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
