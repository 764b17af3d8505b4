"""A shelf in a temporary home, and images made for it without root or an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tare.images import Image
from tare.images.image_store import ImageStore
from tare.images.prepare import prepare
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger

Prepared = Callable[..., Image]


@pytest.fixture
def image_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageStore:
    monkeypatch.setattr("os.sync", lambda: None)  # waits for all that others write on this machine
    layout = Layout(tmp_path / "home")
    return ImageStore(layout, SqliteLedger(layout.ledger))


@pytest.fixture
def prepared(image_store: ImageStore) -> Prepared:
    def make(reference: str, *, rebuild: bool = False, hold: bool = False) -> Image:
        return prepare(
            reference,
            host=FakeHost(),
            layout=image_store.layout,
            ledger=image_store.ledger,
            engine=None,
            rebuild=rebuild,
            hold=hold,
        )

    return make


def left_on(image_store: ImageStore) -> list[str]:
    """What a builder may leave behind by mistake: scratch directories, and ledger entries that are not kept."""
    hidden = [path.name for path in image_store.layout.images.glob(".*")]
    return hidden + [entry.ident for entry in image_store.ledger.entries() if not entry.keep]
