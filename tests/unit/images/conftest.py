"""A shelf in a temporary home, and images made for it without root or an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tare.images import Image
from tare.images.prepare import prepare
from tare.images.shelf import Shelf
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger

Prepared = Callable[..., Image]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    monkeypatch.setattr("os.sync", lambda: None)  # waits for all that others write on this machine
    layout = Layout(tmp_path / "home")
    return Shelf(layout, SqliteLedger(layout.ledger))


@pytest.fixture
def prepared(shelf: Shelf) -> Prepared:
    def make(reference: str, *, rebuild: bool = False, hold: bool = False) -> Image:
        return prepare(
            reference,
            host=FakeHost(),
            layout=shelf.layout,
            ledger=shelf.ledger,
            engine=None,
            rebuild=rebuild,
            hold=hold,
        )

    return make


def left_on(shelf: Shelf) -> list[str]:
    """What a builder may leave behind by mistake: scratch directories, and ledger entries that are not kept."""
    hidden = [path.name for path in shelf.layout.images.glob(".*")]
    return hidden + [entry.ident for entry in shelf.ledger.entries() if not entry.keep]
