"""The passwords of a run are in nothing that it leaves, and in no argument or environment while it lasts."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.run.conftest import Plans, Rig

from tare.run.attempt import raw_files
from tare.store import resume_store


@pytest.fixture
def passwords(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that are made from here on."""
    made: list[str] = []

    def noted(size: int) -> str:
        made.append(secrets.token_hex(size))
        return made[-1]

    monkeypatch.setattr(raw_files, "secrets", SimpleNamespace(token_hex=noted))
    return made


@contextmanager
def watched(passwords: list[str]) -> Iterator[set[str]]:
    """What any process shows of them in its arguments or its environment, looked at again and again."""
    shown, over = set[str](), threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            for name in ("cmdline", "environ"):
                for path in Path("/proc").glob(f"[0-9]*/{name}"):
                    try:
                        content = path.read_bytes()
                    except OSError:
                        continue
                    shown.update(str(path) for each in tuple(passwords) if each.encode() in content)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield shown
    finally:
        over.set()
        watcher.join()


def holding(place: Path, passwords: list[str]) -> list[str]:
    """Files and names below `place` with one of them in it."""
    results = []
    for path in place.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        if any(each.encode() in content or each in path.name for each in passwords):
            results.append(str(path.relative_to(place)))
    return results


@pytest.mark.parametrize("fault", ["", "errors", "crash"])
def test_no_password_is_left_or_shown(
    rig: Rig, plans: Plans, tmp_path: Path, passwords: list[str], fault: str
) -> None:
    plan = plans(fault=fault)
    with watched(passwords) as shown, resume_store(tmp_path / "store", plan) as writer:
        rig.staging = writer.staging
        for record in rig.execute(plan):
            writer.commit(record)
            assert record.outcome.ok == (not fault)
    assert passwords
    assert shown == set()
    assert holding(tmp_path, passwords) == []


def test_the_search_finds_one_that_is_left(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("auth 5ec4e7\n")
    assert holding(tmp_path, ["5ec4e7"]) == ["log"]
