"""A store on a full file system."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tare.errors import StoreError
from tare.store import open_store, resume_store, verify
from tare.store.sqlite_errors import has_no_room, reason_of, room_hint

_CALL_S = 60.0


@pytest.fixture
def store(tmp_path: Path, plan: Any) -> Iterator[Path]:
    """A store on a small file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a tmpfs")
    place = tmp_path / "small"
    place.mkdir()
    options = "size=4m,nr_inodes=100"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tare-test", str(place)], check=True, timeout=_CALL_S)
    try:
        with resume_store(place / "store", plan):
            pass
        yield place / "store"
    finally:
        subprocess.run(["umount", str(place)], check=True, timeout=_CALL_S)


def fill_blocks(place: Path) -> None:
    with suppress(OSError), (place / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


def fill_inodes(place: Path) -> None:
    with suppress(OSError):
        for number in range(100):
            (place / f"empty-{number}").touch()


@pytest.fixture(params=[fill_blocks, fill_inodes])
def full(store: Path, request: pytest.FixtureRequest) -> Path:
    """A store whose file system has no room, or no inode, left."""
    request.param(store.parent)
    return store


def test_a_store_on_a_full_file_system_is_read(full: Path, plan: Any) -> None:
    assert open_store(full).plan == plan
    assert open_store(full).records() == ()
    assert verify(open_store(full)) == ()


def test_a_writer_is_told_of_the_full_file_system(full: Path, plan: Any) -> None:
    with (
        pytest.raises(
            StoreError,
            match=r"cannot be opened: its file system has no room left \(free 1 MiB and two inodes there",
        ),
        resume_store(full, plan),
    ):
        pytest.fail("there was room")
    assert open_store(full).plan == plan, "what the attempt has left keeps nobody from reading"


def test_what_was_committed_and_is_not_in_the_database_yet_needs_room(store: Path) -> None:
    (store / "store.sqlite-wal").write_bytes(b"x" * 4096)
    fill_blocks(store.parent)
    with pytest.raises(StoreError, match="has no room left"):
        open_store(store)


@pytest.mark.parametrize("name", ["SQLITE_IOERR_SHMSIZE", "SQLITE_CANTOPEN"])
def test_what_fails_in_the_same_way_on_a_file_system_with_room_is_another_error(tmp_path: Path, name: str) -> None:
    """SQLite extends its index, or makes it, and does not tell why that failed."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = name
    assert not has_no_room(error, tmp_path)
    assert (reason_of(error, tmp_path), room_hint(error, tmp_path)) == ("disk I/O error", None)


def test_a_database_with_a_transaction_to_roll_back_is_not_read_without_that(
    tmp_path: Path, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with resume_store(tmp_path / "store", plan):
        pass
    (tmp_path / "store" / "store.sqlite-journal").write_bytes(b"x" * 4096)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StoreError, match="attempt to write a readonly database"):
        open_store(tmp_path / "store")
