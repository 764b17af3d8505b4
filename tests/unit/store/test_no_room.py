"""A store on a full file system."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tare.errors import StoreError
from tare.store import open_store, resume_store, verify

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a tmpfs")
_CALL_S = 20.0


@pytest.fixture
def full(tmp_path: Path, plan: Any) -> Iterator[Path]:
    """A store whose file system has no room left."""
    place = tmp_path / "full"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tare-test", str(place)], check=True, timeout=_CALL_S)
    try:
        with resume_store(place / "store", plan):
            pass
        with suppress(OSError), (place / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        yield place / "store"
    finally:
        subprocess.run(["umount", str(place)], check=True, timeout=_CALL_S)


def test_a_store_on_a_full_file_system_is_read(full: Path, plan: Any) -> None:
    assert open_store(full).plan == plan
    assert open_store(full).records() == ()
    assert verify(open_store(full)) == ()


def test_a_writer_is_told_of_the_full_file_system(full: Path, plan: Any) -> None:
    with (
        pytest.raises(StoreError, match=r"cannot be opened: its file system has no room left \(free 1 MiB there"),
        resume_store(full, plan),
    ):
        pytest.fail("there was room")
    assert open_store(full).plan == plan, "what the attempt has left keeps nobody from reading"


def test_what_was_committed_and_is_not_in_the_database_yet_needs_room(full: Path) -> None:
    (full.parent / "filler").unlink()
    (full / "store.sqlite-wal").write_bytes(b"x" * 4096)
    with suppress(OSError), (full.parent / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    with pytest.raises(StoreError, match="has no room left"):
        open_store(full)
