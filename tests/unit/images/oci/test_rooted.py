"""Paths below a root, as the kernel resolves them: no step leaves it, whatever changes meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.images.tars import file, write_tar

from tare.errors import EnvironmentLacks, StudyError
from tare.images.accounts import owner_in
from tare.images.oci import rooted
from tare.images.oci.rooted import RootedTree, read_inside
from tare.images.oci.unpack import unpack
from tare.images.packages import installed_packages

STATUS = "Package: {}\nVersion: 1\nStatus: install ok installed\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root beside a directory that no path of it may reach."""
    (tmp_path / "root" / "in" / "deep").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("secret")
    return tmp_path / "root"


@pytest.fixture
def tree(root: Path) -> Iterator[RootedTree]:
    made = RootedTree(root)
    yield made
    made.close()


LEADING = {
    "absolute": ("/in/deep", "in/deep"),
    "upward": ("../../../../in/deep", "in/deep"),
    "through another link": ("also/deep", "in/deep"),
    "to the root": ("/", ""),
}


@pytest.mark.parametrize(("target", "reached"), LEADING.values(), ids=LEADING)
def test_links_lead_as_for_a_program_whose_root_it_is(
    root: Path, tree: RootedTree, target: str, reached: str
) -> None:
    (root / "also").symlink_to("/in")
    (root / "way").symlink_to(target)
    with tree.directory("way") as directory:
        assert directory.path == reached
        assert directory.child("x") == f"{reached}/x".lstrip("/")


@pytest.mark.parametrize("path", ["../outside", "/../outside", "in/../../outside"])
def test_no_way_leads_out(root: Path, tree: RootedTree, path: str) -> None:
    (root / "way").symlink_to(path)
    for each in (path, "way"):
        with pytest.raises(FileNotFoundError), tree.directory(each):
            pass
    assert tree.read("way/file") is None


def test_what_dangling_links_lead_to_is_made_inside(root: Path, tree: RootedTree) -> None:
    (root / "a").symlink_to("in/none/../b/c")
    (root / "in" / "b").symlink_to("/new/../other")
    previous = os.umask(0o077)
    try:
        with tree.directory("a/d", make=True) as directory:
            assert directory.path == "other/c/d"
    finally:
        os.umask(previous)
    assert (root / "other" / "c").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("path", "number"), [("loop", errno.ELOOP), ("file/x", errno.ENOTDIR)])
def test_what_is_no_directory_is_told_apart(root: Path, tree: RootedTree, path: str, number: int) -> None:
    (root / "loop").symlink_to("loop")
    (root / "file").touch()
    with pytest.raises(OSError) as error, tree.directory(path, make=True):  # noqa: PT011 - by its number
        pass
    assert error.value.errno == number


def test_a_mount_is_another_file_system() -> None:
    tree = RootedTree(Path("/"))
    with pytest.raises(OSError) as error, tree.directory("proc/self"):  # noqa: PT011 - by its number
        pass
    tree.close()
    assert error.value.errno == errno.EXDEV


def test_links_of_endless_text_end(root: Path, tree: RootedTree) -> None:
    (root / "a").symlink_to("n/" * 1500 + "b")
    with pytest.raises(OSError), tree.directory("a", make=True):  # noqa: PT011 - which one is all the same
        pass
    assert len(list((root).iterdir())) <= 3


def test_an_old_kernel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooted, "_OPENAT2", 9999)
    with pytest.raises(EnvironmentLacks, match="openat2"), RootedTree(tmp_path).directory(""):
        pass


@pytest.mark.parametrize("kind", ["link out", "link to a folder", "pipe", "folder", "absent", "huge"])
def test_what_is_no_file_of_the_image_is_not_read(root: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "x"
    if kind == "link out":
        path.symlink_to(root.parent / "outside" / "file")
    elif kind == "link to a folder":
        path.symlink_to("in")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        monkeypatch.setattr(rooted, "_MOST_READ", 3)
        path.write_text("four")
    assert read_inside(root, "x") is None


def test_accounts_and_packages_are_the_image_s_own_through_links_too(root: Path) -> None:
    """Through `var` or `etc` as links, a careless reader would get at the machine's."""
    (root / "store").mkdir()
    (root / "store" / "passwd").write_text("db:x:12:34::/:/bin/sh\n")
    (root / "store" / "group").write_text("data:x:56:\n")
    (root / "etc").symlink_to("/store")
    (root / "var").symlink_to("/var")
    assert [owner_in(root, user) for user in ("", "root", "0", "db", "12", "db:data", "7:8")] == [
        None, None, None, "12:34", "12:34", "12:56", "7:8",
    ]  # fmt: skip
    assert installed_packages(root) == ()
    (root / "var").unlink()
    (root / "lib" / "dpkg").mkdir(parents=True)
    (root / "lib" / "dpkg" / "status").write_text(STATUS.format("own"))
    (root / "var").symlink_to(".")
    assert installed_packages(root) == (("own", "1"),)


def test_a_pipe_in_place_of_the_accounts_keeps_nobody_waiting(root: Path) -> None:
    (root / "etc").mkdir()
    os.mkfifo(root / "etc" / "passwd")
    assert owner_in(root, "db") == "db:db"


def test_a_directory_that_becomes_a_link_out_while_it_is_filled_lets_nothing_out(tmp_path: Path) -> None:
    """The race that a check of paths loses."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for path in (root, root / "d", outside):
        path.mkdir()
    (tmp_path / "link").symlink_to(outside)
    archive = write_tar(tmp_path / "layer.tar", [file(f"d/f{number}") for number in range(2000)])
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                (root / "d").rename(tmp_path / "kept")
                (tmp_path / "link").rename(root / "d")
                (root / "d").rename(tmp_path / "link")
                (tmp_path / "kept").rename(root / "d")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(3):
            with contextlib.suppress(StudyError, OSError):
                unpack([archive], root)
    finally:
        over.set()
        swapper.join()
    assert list(outside.iterdir()) == []
