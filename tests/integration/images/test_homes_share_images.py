"""Two homes on one engine: both have an image, and it goes with the last of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from docker import DockerClient
from tests import preloaded
from tests.integration.images.test_engine_images import rootfs, write_tar

from tare.images.engine_image import id_of, own_name
from tare.images.image_store import ImageStore
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger

__all__ = ["rootfs"]
"""A fixture."""

pytestmark = pytest.mark.engine


def test_an_image_that_two_homes_have_goes_with_the_last_of_them(
    engine: DockerClient, rootfs: Path, tmp_path: Path
) -> None:
    write_tar(rootfs, tmp_path / "tree.tar")
    homes = [tmp_path / "one", tmp_path / "other"]
    images = [tare(home, "images", "build", f"tar:{tmp_path / 'tree.tar'}", "--json") for home in homes]
    one, other = (json.loads(made)["images"][0]["engine_id"] for made in images)
    assert one == other, "the same tree was imported twice"
    assert len(engine.images.get(one).tags) == 2
    cleaned = tare(homes[0], "clean", "--yes")
    (stored,) = ImageStore(Layout(homes[1]), ledger_of(homes[1])).all()
    assert f"image {own_name(stored.image, homes[0])}" in cleaned
    assert id_of(engine, one) == one
    assert "the engine's image is the same" in tare(homes[1], "images", "verify")
    tare(homes[1], "clean", "--yes")
    assert id_of(engine, one) is None
    assert [ledger_of(home).entries() for home in homes] == [(), ()]


def ledger_of(home: Path) -> SqliteLedger:
    return SqliteLedger(Layout(home).ledger)


def tare(home: Path, *words: str) -> str:
    argv = [sys.executable, "-m", "tare", *words]
    done = preloaded.run(argv, env={**os.environ, "TARE_HOME": str(home)}, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
