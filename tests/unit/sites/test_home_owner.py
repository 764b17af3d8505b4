"""Root removes what a ledger lists, so nobody else may have written it. Found by attack."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.analyze import synthetic

from tare.errors import EnvironmentLacks
from tare.images.image_store import ImageStore
from tare.live import charts
from tare.sites.in_use import in_use
from tare.sites.layout import Layout, make_directory, refuse_foreign
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store.raw import SharedFiles

OTHER = 65_432

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives directories away")


@needs_root
def test_a_home_of_another_user_is_refused_before_its_ledger_is_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    SqliteLedger(home / "ledger.sqlite").note(Kind.PATH, str(tmp_path / "thesis"))
    os.chown(home, OTHER, OTHER)
    with pytest.raises(EnvironmentLacks, match=f"home belongs to user {OTHER}, who could have this tare remove"):
        SqliteLedger(home / "ledger.sqlite")


@needs_root
def test_a_ledger_of_another_user_is_refused_in_a_home_of_ones_own(tmp_path: Path) -> None:
    ledger = tmp_path / "home" / "ledger.sqlite"
    SqliteLedger(ledger).note(Kind.PATH, str(tmp_path / "thesis"))
    for path in tmp_path.joinpath("home").iterdir():
        os.chown(path, OTHER, OTHER)
    with pytest.raises(EnvironmentLacks, match=r"ledger\.sqlite belongs to user"):
        SqliteLedger(ledger)


@needs_root
def test_the_user_who_called_sudo_may_own_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", OTHER, OTHER)
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    SqliteLedger(tmp_path / "home" / "ledger.sqlite").note(Kind.PATH, "/a/b/c")


@needs_root
def test_so_may_that_users_group_write_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a umask of 0002 makes it, which comes with a group for each user."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o775)
    os.chown(home, OTHER, OTHER)
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    with pytest.raises(EnvironmentLacks, match="can be written by other users"):
        refuse_foreign(home)
    monkeypatch.setenv("SUDO_GID", str(OTHER))
    refuse_foreign(home)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_a_home_that_everybody_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    with pytest.raises(EnvironmentLacks, match="home can be written by other users"):
        SqliteLedger(home / "ledger.sqlite")


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o775])
def test_a_home_of_ones_own_is_used(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    refuse_foreign(home)
    refuse_foreign(tmp_path / "none")


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022])
def test_a_home_is_made_so_that_nobody_else_can_write_to_it(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with in_use(tmp_path / "share" / "tare"):
            make_directory(tmp_path / "share" / "tare" / "unit-costs" / "machine")
    finally:
        os.umask(before)
    made = [tmp_path / "share", *(path for path in (tmp_path / "share").rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in made} == {0o755}
    assert len(made) == 4
    refuse_foreign(tmp_path / "share" / "tare")


def use_images(home: Path) -> None:
    with ImageStore(Layout(home), SqliteLedger(home / "ledger.sqlite")).lock():
        pass


def show_runs(_: Path) -> None:
    charts.charting_script()


def read_a_store_at_a_url(home: Path) -> None:
    SharedFiles("", home / "stores" / "1" / "copies" / "2", lambda _: {}).path(synthetic.record(1, "bare", 1.0), "")


@pytest.mark.parametrize("use", [use_images, show_runs, read_a_store_at_a_url])
def test_so_it_is_by_what_may_be_the_first_to_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], None]
) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda _: "")  # takes seconds
    before = os.umask(0o000)
    try:
        use(tmp_path / "home")
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "home", *(tmp_path / "home").rglob("*")) if path.is_dir()]
    assert len(made) > 1
    assert {path.stat().st_mode & 0o022 for path in made} == {0}
    refuse_foreign(tmp_path / "home")
