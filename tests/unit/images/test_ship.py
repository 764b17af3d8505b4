"""Images are brought to other hosts whole, whoever else brings the same at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.images.conftest import Prepared

from tare.images.image_store import ImageStore
from tare.images.ship import ImageDestination, ship
from tare.sites.layout import Layout
from tare.sites.ledger import Ledger
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger


class Together(LocalHost):
    """A host to which two bring an archive at the same moment."""

    def __init__(self) -> None:
        super().__init__("far")
        self._both = threading.Barrier(2, timeout=60)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        super().put(source, target, mode=mode)
        if target.endswith("tree.tar"):
            self._both.wait()


@pytest.fixture
def far(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "far")


@pytest.fixture
def ledger(far: Layout) -> Ledger:
    return SqliteLedger(far.ledger)


def test_two_that_bring_one_image_at_once_both_have_it(
    prepared: Prepared, image_store: ImageStore, far: Layout, ledger: Ledger
) -> None:
    """Found between two test hosts: both wrote one archive, and the study of one ended."""
    image, destination = prepared("fake:a"), ImageDestination(Together(), far, ledger, None)
    with ThreadPoolExecutor() as both:
        brought = [each.result() for each in [both.submit(ship, image, image_store, destination) for _ in range(2)]]
    assert brought[0] == brought[1]
    assert (Path(brought[0].rootfs) / "text").read_text() == "a"
    assert [path.name for path in far.images.iterdir()] == [Path(brought[0].rootfs).parent.name]
    assert [entry.ident for entry in ledger.entries()] == [str(Path(brought[0].rootfs).parent)]


def test_half_an_image_is_brought_anew(
    prepared: Prepared, image_store: ImageStore, far: Layout, ledger: Ledger
) -> None:
    image, destination = prepared("fake:a"), ImageDestination(LocalHost("far"), far, ledger, None)
    home = Path(ship(image, image_store, destination).rootfs).parent
    (home / "shipped.json").unlink()
    (home / "rootfs" / "text").write_text("half")
    assert (Path(ship(image, image_store, destination).rootfs) / "text").read_text() == "a"
    assert [path.name for path in far.images.iterdir()] == [home.name]


def test_a_tree_on_another_host_is_closed_to_its_other_users(
    prepared: Prepared, image_store: ImageStore, far: Layout, ledger: Ledger
) -> None:
    shipped = ship(prepared("fake:a"), image_store, ImageDestination(LocalHost("far"), far, ledger, None))
    for place in (far.images, Path(shipped.rootfs).parent):
        assert place.stat().st_mode & 0o777 == 0o700
    assert Path(shipped.rootfs).stat().st_mode & 0o777 == 0o755
