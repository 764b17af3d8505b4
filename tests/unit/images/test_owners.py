"""A tree that a user unpacked: all of it is their own, and listing, digest and archive are as of root's."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from tests.unit.images.tars import Entry, file, folder, hard_link, link, write_tar

from tare.errors import StoreError
from tare.images import Image, ImageConfig
from tare.images.digest import Listed, list_tree
from tare.images.engine_image import listing_of, pack
from tare.images.oci.unpack import unpack
from tare.images.owners import Known

CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")
LAYERS = [
    [
        folder("etc", 0o755),
        Entry("etc/shadow", content=b"secret", mode=0o000, uid=0, gid=42),
        Entry("var/lib/db", kind=tarfile.DIRTYPE, mode=0o2750, uid=999, gid=998),
        Entry("var/lib/db/file", content=b"x", mode=0o640, uid=999, gid=998),
        Entry("bin/su", content=b"su", mode=0o4755, uid=0, gid=0),
        Entry("bin/ping", content=b"ping", mode=0o755, uid=0, gid=0, headers=(
            ("SCHILY.xattr.security.capability", CAPABILITY.decode("utf-8", "surrogateescape")),
        )),
        Entry("pipe", kind=tarfile.FIFOTYPE, mode=0o622, uid=7, gid=7),
        Entry("link", kind=tarfile.SYMTYPE, target="etc", uid=12, gid=34),
        hard_link("bin/su2", "bin/su"),
        folder("gone", 0o700),
        Entry("gone/file", content=b"x", mode=0o600, uid=5, gid=5),
    ],
    [
        file(".wh.gone", b""),
        Entry("etc/passwd", content=b"root", mode=0o444, uid=0, gid=0),
        Entry("etc/shadow", content=b"newer", mode=0o640, uid=0, gid=42),
        Entry("implied/by/name", content=b"x", mode=0o600, uid=5, gid=5),
        link("bin/su3", "su"),
    ],
]  # fmt: skip


def unpacked(base: Path, name: str) -> tuple[Path, Known | None]:
    root = base / name
    root.mkdir()
    archives = [write_tar(base / f"{name}-{number}.tar", layer) for number, layer in enumerate(LAYERS)]
    return root, unpack(archives, root)


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Known]:
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        root, known = unpacked(tmp_path, "users")
    assert known is not None
    return root, known


def test_a_users_files_are_theirs_alone_to_write_and_have_no_set_id_bit(
    users: tuple[Path, Known],
) -> None:
    for path in users[0].rglob("*"):
        about = path.lstat()
        assert (about.st_uid, about.st_gid) == (os.getuid(), os.getgid())
        assert about.st_mode & 0o6000 == 0
        assert about.st_mode & 0o600 == 0o600
        assert path.is_symlink() or about.st_mode & 0o022 == 0


def test_attributes_are_kept_through_links_replaced_files_and_reused_inodes(users: tuple[Path, Known]) -> None:
    entries = {each.path: each for each in list_tree(*users)}
    has = {name: (each.mode, each.uid, each.gid) for name, each in entries.items()}
    assert has["etc/shadow"] == (0o640, 0, 42)
    assert has["var/lib/db"] == (0o2750, 999, 998)
    assert has["bin/su"] == has["bin/su2"] == (0o4755, 0, 0)
    assert has["link"] == (0, 12, 34)
    assert has["pipe"] == (0o622, 7, 7)
    assert has["implied"] == has["implied/by"] == has["."] == (0o755, 0, 0)
    assert entries["bin/ping"].capability == CAPABILITY.hex()
    assert "gone" not in has


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_listing_and_archive_are_as_of_the_tree_that_root_unpacked(
    tmp_path: Path, users: tuple[Path, Known]
) -> None:
    root, of_root = unpacked(tmp_path, "roots")
    assert of_root is None
    tree = tuple(list_tree(root))
    assert tuple(list_tree(*users)) == tree
    pack(root, tmp_path / "roots.tar")
    pack(users[0], tmp_path / "users.tar", Listed(tree))
    assert (tmp_path / "users.tar").read_bytes() == (tmp_path / "roots.tar").read_bytes()


def test_a_listed_image_has_its_owners_from_the_file_beside_its_tree(
    tmp_path: Path, users: tuple[Path, Known]
) -> None:
    image = Image("x", "d", str(users[0]), None, ImageConfig(), listed=True)
    with pytest.raises(StoreError, match=r"tree\.jsonl cannot be read"):
        listing_of(image)
    (tmp_path / "tree.jsonl").write_text("".join(each.line for each in list_tree(*users)))
    known = listing_of(image)
    assert tuple(list_tree(users[0], known)) == tuple(list_tree(*users))
    assert listing_of(Image("x", "d", str(users[0]), None, ImageConfig())) is None
