"""`tare images` lists, builds, verifies and removes; here without an engine, on the fake source."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import tare.cli.machine.images as command
from tare.cli import app
from tare.errors import EnvironmentLacks, StudyError
from tare.images.image_store import ImageStore
from tare.run.local import Engine
from tare.sites.layout import ENV, Layout
from tare.sites.sqlite_ledger import SqliteLedger


@contextmanager
def no_engine() -> Iterator[Engine]:
    yield Engine(None, "no container engine answers")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENV, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(command, "local_engine", no_engine)
    monkeypatch.setattr("os.sync", lambda: None)  # waits for all that others write on this machine
    return tmp_path


def images(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["images", *arguments])


def tree(*arguments: str) -> dict[str, Any]:
    shown = images(*arguments, "--json")
    assert shown.exit_code == 0, shown.output
    document = json.loads(shown.stdout)
    assert isinstance(document, dict)
    return document


def test_nothing_is_listed_verified_or_kept_before_something_is_built(home: Path) -> None:
    assert images("list").stdout == "no images\n"
    assert tree("list") == {"images": []}
    assert images("verify").stdout == "no images\n"


def test_what_was_built_is_listed(home: Path) -> None:
    built = tree("build", "fake:a", "fake:b")["images"]
    assert [each["reference"] for each in built] == ["fake:a", "fake:b"]
    assert tree("list")["images"] == built
    assert built[0]["engine_id"] is None
    assert built[0]["size_bytes"] == 1
    assert (Path(built[0]["rootfs"]) / "text").read_text() == "a"
    lines = images("list").stdout.splitlines()
    assert lines[0].split() == ["reference", "digest", "size", "packages", "in", "engine", "made"]
    assert lines[1].split()[:6] == ["fake:a", built[0]["digest"][:12], "0", "MB", "unknown", "no"]
    assert max(map(len, lines)) <= 80


def test_building_says_on_stderr_that_there_is_no_engine(home: Path) -> None:
    shown = images("build", "fake:a")
    assert "for bare runs only" in shown.stderr
    assert "no container engine" not in shown.stdout


def test_rebuild_mends_a_changed_tree(home: Path) -> None:
    (built,) = tree("build", "fake:a")["images"]
    text = Path(built["rootfs"]) / "text"
    text.write_text("changed")
    refused = images("build", "fake:a")
    assert refused.exit_code == 1
    assert 'was changed on disk: it has "/text" with other content' in str(refused.exception)
    assert text.read_text() == "changed"
    tree("build", "--rebuild", "fake:a")
    assert text.read_text() == "a"


def test_verify_tells_the_first_difference_and_ends_with_1(home: Path) -> None:
    (built,) = tree("build", "fake:a")["images"]
    assert images("verify").exit_code == 0
    (Path(built["rootfs"]) / "new").touch()
    shown = images("verify", built["digest"][:6])
    assert shown.exit_code == 1
    first, second = shown.stdout.splitlines()
    assert first == f'{built["digest"][:12]} fake:a: the tree has "/new", which it should not have'
    assert "the engine's image was not checked" in second
    shown = images("verify", "--json")
    assert shown.exit_code == 1
    (verified,) = json.loads(shown.stdout)["verified"]
    assert not verified["good"]
    assert not verified["engine_checked"]


def test_what_is_removed_is_gone_from_shelf_and_ledger(home: Path) -> None:
    built = tree("build", "fake:a", "fake:b")["images"]
    digest = built[0]["digest"]
    assert tree("remove", digest[:8], "fake:a") == {"removed": [digest], "failed": []}
    assert tree("list")["images"] == built[1:]
    assert images("remove", "fake:b").stdout == f"removed {built[1]['digest'][:12]} fake:b\n"
    assert SqliteLedger(Layout(home).ledger).entries() == ()
    assert {path.name for path in (home / "images").glob("*")} == {"keys", "lock"}


def test_one_that_is_not_known_stops_the_removal_of_all(home: Path) -> None:
    built = tree("build", "fake:a")["images"]
    assert isinstance(images("remove", "fake:a", "fake:other").exception, StudyError)
    assert tree("list")["images"] == built


def test_one_in_use_is_refused_and_the_others_removed(home: Path) -> None:
    used, free = tree("build", "fake:a", "fake:b")["images"]
    layout = Layout(home)
    ImageStore(layout, SqliteLedger(layout.ledger)).hold(used["digest"])
    shown = images("remove", "fake:a", "fake:b")
    assert shown.exit_code == EnvironmentLacks.exit_code
    assert shown.stdout == f"removed {free['digest'][:12]} fake:b\n"
    assert "a running tare is using the image" in shown.stderr
    assert tree("list")["images"] == [used]


@pytest.mark.parametrize("arguments", [["build"], ["remove"]])
def test_an_argument_is_wanted(home: Path, arguments: list[str]) -> None:
    assert images(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("reference", "message"),
    [("mariadbb", "did you mean"), ("tar:none", "no file none"), ("oci:none", "no OCI layout")],
)
def test_a_reference_that_means_nothing_is_one_error(home: Path, reference: str, message: str) -> None:
    shown = images("build", reference)
    assert isinstance(shown.exception, StudyError)
    assert message in str(shown.exception)
    assert shown.stdout == ""


def test_a_signal_ends_it_as_shells_have_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "prepare", lambda *_, **__: signal.raise_signal(signal.SIGTERM))
    shown = images("build", "fake:a")
    assert shown.exit_code == 128 + signal.SIGTERM
    assert "nothing incomplete is left" in shown.stderr
