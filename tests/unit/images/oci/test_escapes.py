"""Images made to break out or to fill the disk: each is refused, or unpacked inside. Canaries stand outside.

The ways are those of published flaws of other unpackers: links that are followed later,
names that mean another file on a careless file system, sparse files that claim far more than they hold.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.images.tars import Entry, file, folder, hard_link, link, write_tar

from tare.errors import StudyError
from tare.images import ImageConfig
from tare.images.digest import first_difference, image_digest, list_tree, parse_listing
from tare.images.oci import unpack as module
from tare.images.oci.unpack import unpack


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Where an image is unpacked, between two canaries that must be as they were."""
    (tmp_path / "root").mkdir()
    for name in ("aaa", "zzz"):
        (tmp_path / name).mkdir(mode=0o750)
        (tmp_path / name / "file").write_text("kept")
    before = list(list_tree(tmp_path / "aaa")), list(list_tree(tmp_path / "zzz"))
    yield tmp_path / "root"
    assert (list(list_tree(tmp_path / "aaa")), list(list_tree(tmp_path / "zzz"))) == before


def apply(root: Path, *layers: list[Entry]) -> None:
    unpack([write_tar(root.parent / f"layer{n}.tar", layer) for n, layer in enumerate(layers)], root)


ODD = ("a\nb", "a\\nb", "\x1b[2J", "a b", "-rf", "~", "$(id)", "a\u202eb", "é", "e\u0301", "\udcff", "con", " ")


def test_odd_names_are_names_and_stand_in_the_listing_one_a_line(root: Path) -> None:
    apply(root, [file(f"d/{name}", name.encode("utf-8", "surrogateescape")) for name in ODD])
    assert {each.name for each in (root / "d").iterdir()} == set(ODD)
    tree = list(list_tree(root))
    listing = "".join(entry.line for entry in tree)
    assert len(listing.splitlines()) == len(tree)
    assert list(parse_listing(listing)) == tree


def test_twins_in_case_and_in_unicode_are_two_files_or_one_by_the_last_entry(root: Path) -> None:
    apply(root, [file("A", b"upper"), file("a", b"lower"), file("\u00e9", b"composed"), file("e\u0301", b"parts")])
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {
        "A": b"upper", "a": b"lower", "\u00e9": b"composed", "e\u0301": b"parts",
    }  # fmt: skip


def test_a_link_made_by_one_layer_and_a_directory_named_alike_by_the_next_write_inside(root: Path) -> None:
    apply(root, [link("etc", "../zzz"), link("usr", "/../../../../zzz")], [file("etc/file"), file("usr/file")])
    assert {path.name for path in root.iterdir() if path.is_dir() and not path.is_symlink()} == {"zzz"}
    assert (root / "zzz" / "file").read_bytes() == b"x"


def test_a_hard_link_through_a_chain_of_links_out_is_refused(root: Path) -> None:
    with pytest.raises(StudyError, match="no file before it"):
        apply(root, [link("a", "b"), link("b", "../zzz"), hard_link("c", "a/file")])


def test_a_whiteout_through_a_link_out_removes_nothing(root: Path) -> None:
    apply(root, [link("out", "../zzz")], [file("out/.wh.file", b""), file("out/.wh..wh..opq", b"")])


def test_set_id_bits_are_an_images_own_and_no_user_s(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    apply(root, [Entry("su", content=b"x", mode=0o6755)])
    assert (root / "su").stat().st_mode & 0o6000 == 0


def test_a_sparse_file_that_claims_more_than_an_image_may_is_refused(root: Path) -> None:
    bomb = tarfile.TarInfo("bomb")
    bomb.size = module.MAX_BYTES + 1
    data = bomb.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20)
    (root.parent / "bomb.tar").write_bytes(data)
    with pytest.raises(StudyError):
        unpack([root.parent / "bomb.tar"], root)
    assert sum(path.lstat().st_blocks for path in root.rglob("*")) < 1 << 12


def sparse(size: int) -> bytes:
    """A member of GNU's old sparse format that holds one hole and nothing else."""
    entry = tarfile.TarInfo("hole")
    entry.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" * 2
    header[482:495] = b"\0" + b"%011o\0" % size
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:]) + 8 * 0x20)
    return bytes(header) + bytes(1024)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_hole_of_gigabytes_in_a_kilobyte_is_refused_unwritten(root: Path, *, packed: bool) -> None:
    archive, size = root.parent / "hole.tar", 7 << 30
    archive.write_bytes(gzip.compress(sparse(size)) if packed else sparse(size))
    with pytest.raises(StudyError, match="times its archive"):
        unpack([archive], root)
    assert list(root.iterdir()) == []


def test_a_small_hole_is_a_file_of_zeros(root: Path) -> None:
    (root.parent / "hole.tar").write_bytes(sparse(5000))
    unpack([root.parent / "hole.tar"], root)
    assert (root / "hole").read_bytes() == bytes(5000)


def test_a_hard_link_that_the_file_system_refuses_is_no_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: object, **_more: object) -> None:
        raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))

    monkeypatch.setattr(os, "link", refused)
    with pytest.raises(OSError, match="Too many links"):
        apply(root, [file("a"), hard_link("b", "a")])
    assert {path.name for path in root.iterdir()} == {"a"}


def test_a_device_is_not_made_and_opens_nothing(root: Path) -> None:
    apply(
        root,
        [
            Entry("dev/sda", kind=tarfile.BLKTYPE, device=(8, 0)),
            Entry("dev/mem", kind=tarfile.CHRTYPE, device=(1, 1)),
        ],
    )
    assert list((root / "dev").iterdir()) == []


def test_what_was_changed_in_a_tree_afterwards_is_found(root: Path) -> None:
    apply(root, [folder("bin"), file("bin/server", b"good", mode=0o755)])
    before = list(list_tree(root))
    digest = image_digest(before, ImageConfig())
    (root / "bin" / "server").write_bytes(b"evil")
    after = list(list_tree(root))
    assert "/bin/server" in (first_difference(before, after) or "")
    assert image_digest(after, ImageConfig()) != digest


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_unpacking_takes_time_in_proportion_to_the_entries(root: Path) -> None:
    took_s = {}
    for count in (50_000, 1_000_000):
        archive, place = root.parent / "many.tar", root / str(count)
        place.mkdir()
        with tarfile.open(archive, "w") as tar:
            for number in range(count):
                entry = tarfile.TarInfo(f"d{number % 1000}/f{number}")
                entry.size = 1
                tar.addfile(entry, io.BytesIO(b"x"))
        began = time.monotonic()
        unpack([archive], place)
        took_s[count] = time.monotonic() - began
        assert sum(1 for _ in (place / "d7").iterdir()) == count / 1000
    assert took_s[1_000_000] < 5 * 20 * took_s[50_000]
