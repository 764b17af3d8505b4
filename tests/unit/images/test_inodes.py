"""A tree that was changed after it was unpacked is seen by its inodes, without a file being read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.images.tars import file, write_tar

from tare.errors import EnvironmentLacks
from tare.images import Image, ImageConfig, inodes, inodes_program
from tare.images.digest import list_tree
from tare.images.prepare import prepare
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger


@pytest.fixture
def image(tmp_path: Path) -> Image:
    root = tmp_path / "home" / "rootfs"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "server").write_text("good")
    (root / "bin" / "a b\nc").write_text("odd")
    (root / "link").symlink_to("/bin")
    (root.parent / "tree.jsonl").write_text("".join(entry.line for entry in list_tree(root)))
    return Image("tar:x", "0" * 64, str(root), None, ImageConfig())


def overwritten_and_set_back(root: Path) -> None:
    about = (root / "bin" / "server").stat()
    (root / "bin" / "server").write_text("evil")
    os.utime(root / "bin" / "server", ns=(about.st_atime_ns, about.st_mtime_ns))


def added(root: Path) -> None:
    (root / "bin" / "new").touch()


def removed(root: Path) -> None:
    (root / "bin" / "a b\nc").unlink()


def opened_to_all(root: Path) -> None:
    (root / "bin").chmod(0o777)


def relinked(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("/etc")


CHANGES: dict[Callable[[Path], None], str] = {
    overwritten_and_set_back: '"/bin/server" changed',
    added: '"/bin/new" new, "/bin" changed',
    removed: '"/bin/a b\\nc" gone, "/bin" changed',
    opened_to_all: '"/bin" changed',
    relinked: '"/link" changed, / changed',
}


@pytest.mark.parametrize(("change", "differences"), CHANGES.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_each_change_is_named(image: Image, change: Callable[[Path], None], differences: str) -> None:
    inodes.take(LocalHost(), image)
    assert inodes.taken(LocalHost(), image)
    assert inodes.changed(LocalHost(), image) is None
    change(Path(image.rootfs))
    assert inodes.changed(LocalHost(), image) == differences


def test_a_tree_without_a_snapshot_has_no_changes(image: Image) -> None:
    assert not inodes.taken(LocalHost(), image)
    assert inodes.changed(LocalHost(), image) is None


def test_reading_changes_nothing(image: Image) -> None:
    inodes.take(LocalHost(), image)
    assert [path.read_bytes() for path in Path(image.rootfs).rglob("*") if path.is_file()]
    assert inodes.changed(LocalHost(), image) is None


def test_a_tree_that_was_copied_with_the_same_content_is_whole_and_taken_down_anew(image: Image) -> None:
    inodes.verify_tree(image)
    (Path(image.rootfs) / "bin" / "server").touch()
    assert inodes.changed(LocalHost(), image)
    inodes.verify_tree(image)
    assert inodes.changed(LocalHost(), image) is None


@pytest.mark.parametrize("change", [overwritten_and_set_back, added, removed, opened_to_all, relinked])
def test_a_tree_with_other_content_is_refused_with_the_command_that_mends_it(
    image: Image, change: Callable[[Path], None]
) -> None:
    inodes.verify_tree(image)
    change(Path(image.rootfs))
    for _ in range(2):
        with pytest.raises(EnvironmentLacks, match=r"the image tar:x was changed on disk: it (has|lacks)") as error:
            inodes.verify_tree(image)
    assert error.value.hint == "`tare images build tar:x --rebuild`"


def test_an_image_is_refused_before_anything_starts_and_a_rebuild_mends_it(tmp_path: Path) -> None:
    archive, layout = write_tar(tmp_path / "image.tar", [file("bin/server", b"good")]), Layout(tmp_path / "home")

    def prepared(*, rebuild: bool = False) -> Image:
        return prepare(
            f"tar:{archive}",
            host=LocalHost(),
            layout=layout,
            ledger=SqliteLedger(layout.ledger),
            engine=None,
            rebuild=rebuild,
            hold=False,
        )

    server = Path(prepared().rootfs) / "bin" / "server"
    assert inodes_program.compare(prepared().rootfs, f"{Path(prepared().rootfs).parent}/inodes") == []
    server.write_text("evil")
    with pytest.raises(EnvironmentLacks, match=r'has "/bin/server" with other content'):
        prepared()
    prepared(rebuild=True)
    assert server.read_text() == "good"
