"""Images are made once, by one builder at a time, and never taken for whole before they are."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import preloaded
from tests.unit.images.conftest import Prepared, left_on

from tare.errors import EnvironmentLacks, StoreError, StudyError
from tare.images import Archive, ImageConfig, Workshop
from tare.images import prepare as module
from tare.images.fake import FakeImages
from tare.images.image_store import ImageStore
from tare.images.registry import IMAGE_SOURCES
from tare.sites.ledger import Kind


class Counting(FakeImages):
    """The fake source, which writes down every fetch; `then` happens after each."""

    def __init__(self, log: Path, then: Callable[[Path], None] = lambda _: None) -> None:
        self._log = log
        self._then = then

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        with self._log.open("a") as log:
            log.write(f"{reference}\n")
        archive = super().fetch(reference, workshop, scratch)
        self._then(scratch)
        return archive


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    log = tmp_path / "log"
    log.touch()
    use(monkeypatch, Counting(log))
    return lambda: log.read_text().split()


def use(monkeypatch: pytest.MonkeyPatch, source: FakeImages) -> None:
    monkeypatch.setattr(module, "IMAGE_SOURCES", {**IMAGE_SOURCES, "fake": source})


def test_an_image_is_made_once_and_then_found(
    prepared: Prepared, image_store: ImageStore, fetched: Callable[[], list[str]]
) -> None:
    first, again = prepared("fake:a"), prepared("fake:a")
    assert first == again
    assert fetched() == ["a"]
    assert (Path(first.rootfs) / "text").read_text() == "a"
    assert first.engine_id is None
    assert left_on(image_store) == []


def test_rebuild_makes_it_anew_and_keeps_the_tree_that_is_the_same(
    prepared: Prepared, fetched: Callable[[], list[str]]
) -> None:
    first = prepared("fake:a")
    inode = Path(first.rootfs).stat().st_ino
    assert prepared("fake:a", rebuild=True) == first
    assert fetched() == ["a", "a"]
    assert Path(first.rootfs).stat().st_ino == inode


def test_rebuild_mends_a_tree_that_was_changed(prepared: Prepared, image_store: ImageStore) -> None:
    image = prepared("fake:a")
    (Path(image.rootfs) / "text").write_text("changed")
    assert prepared("fake:a", rebuild=True) == image
    assert (Path(image.rootfs) / "text").read_text() == "a"
    assert left_on(image_store) == []


def test_rebuild_does_not_replace_a_changed_tree_under_a_run(prepared: Prepared, image_store: ImageStore) -> None:
    image = prepared("fake:a", hold=True)
    (Path(image.rootfs) / "text").write_text("changed")
    with pytest.raises(EnvironmentLacks, match="a running tare is using"):
        prepared("fake:a", rebuild=True)
    assert (Path(image.rootfs) / "text").read_text() == "changed"
    assert left_on(image_store) == []


def test_an_image_that_a_user_made_is_made_anew_by_root(
    prepared: Prepared, image_store: ImageStore, fetched: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bare programs find owners on disk."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        users = prepared("fake:a")
        assert users.listed
        assert prepared("fake:a") == users
    assert fetched() == ["a"]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda *_args, **_more: None)
    roots = prepared("fake:a")
    assert not roots.listed
    assert (roots.digest, fetched()) == (users.digest, ["a", "a"])
    assert left_on(image_store) == []


def test_another_image_is_another_tree(prepared: Prepared) -> None:
    assert prepared("fake:a").digest != prepared("fake:b").digest


def test_the_same_tree_with_another_configuration_is_another_image(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(FakeImages):
        def cache_key(self, reference: str, workshop: Workshop) -> str | None:
            return f"other{super().cache_key(reference, workshop)}"

        def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
            return Archive(super().fetch(reference, workshop, scratch).layers, ImageConfig(env=(("A", "1"),)))

    first = prepared("fake:a")
    use(monkeypatch, Other())
    second = prepared("fake:a")
    assert first.digest != second.digest
    assert first.config != second.config
    assert (Path(first.rootfs) / "text").read_text() == (Path(second.rootfs) / "text").read_text()


def test_a_lost_key_leads_to_the_same_tree_again(
    prepared: Prepared, image_store: ImageStore, fetched: Callable[[], list[str]]
) -> None:
    image = prepared("fake:a")
    inode = Path(image.rootfs).stat().st_ino
    for key in (image_store.layout.images / "keys").iterdir():
        key.unlink()
    assert prepared("fake:a") == image
    assert fetched() == ["a", "a"]
    assert Path(image.rootfs).stat().st_ino == inode


@pytest.mark.parametrize("lost", ["image.json", "rootfs"])
def test_half_an_image_is_never_taken_for_whole(prepared: Prepared, image_store: ImageStore, lost: str) -> None:
    """As a loss of power leaves it (image.json is written last), or somebody's rm (then the rebuild mends it)."""
    image = prepared("fake:a")
    home = image_store.layout.images / image.digest
    if lost == "rootfs":
        (home / "rootfs" / "text").unlink()
        (home / "rootfs").rmdir()
    else:
        (home / "rootfs" / "text").write_text("half")
        (home / "image.json").unlink()
    assert prepared("fake:a", rebuild=lost == "rootfs") == image
    assert (Path(image.rootfs) / "text").read_text() == "a"


def test_a_damaged_description_is_one_error_that_says_what_to_do(
    prepared: Prepared, image_store: ImageStore
) -> None:
    image = prepared("fake:a")
    for text in ("{", "[]", '{"format": 1}', '{"format": 1, "image": {"config": {}}}'):
        (image_store.layout.images / image.digest / "image.json").write_text(text)
        with pytest.raises(StoreError, match=r"damaged.*\(remove .*"):
            prepared("fake:a")


def test_a_shelf_of_a_newer_tare_is_refused(prepared: Prepared, image_store: ImageStore) -> None:
    image = prepared("fake:a")
    (image_store.layout.images / image.digest / "image.json").write_text('{"format": 3}')
    with pytest.raises(StoreError, match="newer tare"):
        prepared("fake:a")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/x/file"), "No space left on device: /x/file"),
        (PermissionError(errno.EPERM, os.strerror(errno.EPERM)), "Operation not permitted"),
    ],
)
def test_a_full_disk_or_missing_rights_are_one_sentence_and_leave_nothing(
    prepared: Prepared, image_store: ImageStore, monkeypatch: pytest.MonkeyPatch, error: OSError, shown: str
) -> None:
    def fail(scratch: Path) -> None:
        raise error

    use(monkeypatch, Counting(image_store.layout.home / "log", fail))
    with pytest.raises(EnvironmentLacks, match=shown) as raised:
        prepared("fake:a")
    assert "\n" not in str(raised.value)
    assert left_on(image_store) == []
    assert image_store.all() == ()


def test_ctrl_c_leaves_nothing(
    prepared: Prepared, image_store: ImageStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(scratch: Path) -> None:
        signal.raise_signal(signal.SIGINT)

    use(monkeypatch, Counting(tmp_path / "log", interrupt))
    with pytest.raises(KeyboardInterrupt):
        prepared("fake:a")
    assert left_on(image_store) == []
    assert list(image_store.ledger.entries()) == []


BUILDER = Path(__file__).with_name("slow_builder.py")


def building(image_store: ImageStore, log: Path, pause_s: float) -> subprocess.Popen[bytes]:
    argv = [sys.executable, str(BUILDER), str(image_store.layout.home), str(log), str(pause_s)]
    return preloaded.Popen(argv)


def test_two_processes_at_once_make_it_once(image_store: ImageStore, tmp_path: Path) -> None:
    both = [building(image_store, tmp_path / "log", 0.3) for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert (tmp_path / "log").read_text() == "x"
    assert len(image_store.all()) == 1


def test_a_build_is_waited_for_by_those_who_want_its_image_alone(
    prepared: Prepared, image_store: ImageStore, tmp_path: Path
) -> None:
    there = prepared("fake:b")
    slow = building(image_store, tmp_path / "log", 60.0)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "log").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert prepared("fake:b") == there
        assert prepared("fake:c") != there
        assert slow.poll() is None
    finally:
        slow.kill()
        slow.wait(60)


def test_what_a_killed_builder_left_is_cleared_by_the_next(
    prepared: Prepared, image_store: ImageStore, tmp_path: Path
) -> None:
    killed = building(image_store, tmp_path / "log", 60.0)
    deadline = time.monotonic() + 60
    while not (tmp_path / "log").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    killed.wait(60)
    assert [path.name.startswith(".scratch-") for path in image_store.layout.images.glob(".*")] == [True]
    assert image_store.all() == ()
    prepared("fake:a")
    assert left_on(image_store) == []
    assert len(image_store.all()) == 1


def test_an_unknown_recipe_is_an_error_with_a_hint(prepared: Prepared, image_store: ImageStore) -> None:
    with pytest.raises(StudyError, match=r'no image recipe .mariadbb.*did you mean "mariadb"'):
        prepared("mariadbb")
    assert left_on(image_store) == []


def test_everything_on_the_shelf_stands_in_the_ledger_as_kept(prepared: Prepared, image_store: ImageStore) -> None:
    prepared("fake:a")
    made = {(entry.kind, Path(entry.ident).parent, entry.keep) for entry in image_store.ledger.entries()}
    images = image_store.layout.images
    assert made == {(Kind.PATH, images, True), (Kind.PATH, images / "keys", True)}
