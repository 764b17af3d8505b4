from __future__ import annotations

import contextlib
import gzip
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.images.tars import Entry, file, folder, hard_link, link, write_tar

from tare.errors import StudyError, TareError
from tare.images.oci import unpack as module
from tare.images.oci.unpack import unpack

OUTSIDE_MODE = 0o751


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What no image may touch: a directory beside the root with one file."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "file").write_text("kept")
    (path / "file").chmod(0o640)
    path.chmod(OUTSIDE_MODE)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


def apply(root: Path, *layers: list[Entry]) -> None:
    unpack([write_tar(root.parent / f"layer{i}.tar", layer) for i, layer in enumerate(layers)], root)


def tree(root: Path) -> dict[str, str]:
    """Path → content, link target or kind."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            shown = f"-> {os.readlink(path)}"  # noqa: PTH115 - as it stands
        else:
            shown = path.read_text() if path.is_file() else stat.filemode(path.lstat().st_mode)[0]
        found[str(path.relative_to(root))] = shown
    return found


def untouched(outside: Path) -> bool:
    return (
        {path.name for path in outside.iterdir()} == {"file"}
        and (outside / "file").read_text() == "kept"
        and (outside / "file").stat().st_nlink == 1
        and stat.S_IMODE((outside / "file").stat().st_mode) == 0o640
        and stat.S_IMODE(outside.stat().st_mode) == OUTSIDE_MODE
    )


REFUSED = {
    "a name with ..": [file("../outside/new")],
    "a name with .. in the middle": [folder("a"), file("a/../../outside/new")],
    "a whiteout of ..": [file("a/.wh...")],
    "a whiteout of nothing": [file("a/.wh.")],
    "a hard link by ..": [hard_link("a", "../outside/file")],
    "a hard link to an absolute path that the image does not have": [hard_link("a", "/OUTSIDE/file")],
    "a hard link through a link": [link("l", "/OUTSIDE"), hard_link("a", "l/file")],
    "a hard link to a link": [link("l", "/OUTSIDE/file"), hard_link("a", "l")],
    "a hard link to itself": [hard_link("a", "a")],
    "a loop of links": [link("a", "b"), link("b", "a"), file("a/x")],
    "a name below a file": [file("a"), file("a/b")],
    "a file in place of the root": [file("./")],
    "a link in place of the root": [link(".", "/OUTSIDE")],
    "a link to nowhere": [link("a", "")],
    "an owner that is none": [Entry("a", uid=2**32 - 1)],
    "a name of many levels": [file("/".join(["d"] * 300))],
    "a kind that nobody knows": [Entry("a", kind=b"Z")],
    "a file of 2**62 bytes": [Entry("a", claimed_size=2**62)],
    "a name with a zero byte": [Entry("a", headers=(("path", "a\0b"),))],
    "a link target with a zero byte": [Entry("a", kind=tarfile.SYMTYPE, headers=(("linkpath", "a\0b"),))],
    "a size below zero": [Entry("a", headers=(("size", "-1024"),))],
}


@pytest.mark.parametrize("entries", REFUSED.values(), ids=REFUSED)
def test_an_entry_no_honest_image_has_is_refused(root: Path, outside: Path, entries: list[Entry]) -> None:
    with pytest.raises(StudyError, match=r"layer|image"):
        apply(root, [_aimed(entry, outside) for entry in entries])
    assert untouched(outside)


def _aimed(entry: Entry, outside: Path) -> Entry:
    return Entry(**{**vars(entry), "target": entry.target.replace("/OUTSIDE", str(outside))})


@pytest.mark.parametrize("prefix", ["", "/", "//"], ids=["one slash", "two slashes", "three slashes"])
@pytest.mark.parametrize("upward", ["", "../" * 20], ids=["absolute", "by .."])
def test_a_link_out_of_the_image_leads_to_a_place_inside(
    root: Path, outside: Path, prefix: str, upward: str
) -> None:
    target = (upward or prefix) + str(outside)
    apply(root, [link("way", target), file("way/new", b"in"), folder("way/deep", 0o700)])
    assert untouched(outside)
    assert (root / str(outside).lstrip("/") / "new").read_text() == "in"


def test_a_link_in_a_lower_layer_does_not_lead_out_either(root: Path, outside: Path) -> None:
    way = link("way", str(outside))
    apply(root, [way, link("also", f"/{outside}")], [file("way/file", b"no"), file("also/.wh.file")])
    assert untouched(outside)


@pytest.mark.parametrize("name", ["way/.wh.file", "way/.wh..wh..opq"])
def test_a_whiteout_through_a_link_removes_nothing_outside(root: Path, outside: Path, name: str) -> None:
    apply(root, [link("way", str(outside))], [file(name)])
    assert untouched(outside)


def test_a_directory_replaced_by_a_link_does_not_pass_on_its_mode(root: Path, outside: Path) -> None:
    apply(root, [folder("d", 0o777), link("d", str(outside))])
    assert untouched(outside)


def test_nor_does_one_whose_parent_was_replaced(root: Path, outside: Path) -> None:
    apply(root, [folder("p"), folder("p/outside", 0o777), link("p", str(outside.parent))])
    assert untouched(outside)


def test_a_file_written_where_a_link_was_replaces_the_link(root: Path, outside: Path) -> None:
    apply(root, [link("a", str(outside / "file")), file("a", b"own")])
    assert untouched(outside)
    assert tree(root) == {"a": "own"}


def test_a_directory_where_a_link_was_replaces_the_link(root: Path, outside: Path) -> None:
    apply(root, [link("a", str(outside))], [folder("a", 0o777), file("a/x", b"own")])
    assert untouched(outside)
    assert tree(root) == {"a": "d", "a/x": "own"}


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE])
def test_devices_are_not_made(root: Path, kind: bytes) -> None:
    apply(root, [Entry("dev/sda", kind=kind, device=(8, 0)), file("after")])
    assert tree(root) == {"dev": "d", "after": "x"}


def test_a_device_0_0_hides_what_lay_there(root: Path) -> None:
    apply(root, [file("a"), file("b")], [Entry("a", kind=tarfile.CHRTYPE)])
    assert tree(root) == {"b": "x"}


def test_whiteouts_hide_lower_layers_only(root: Path) -> None:
    lower = [file("d/old"), file("d/both", b"1"), file("gone"), file("e/deep/old"), file("e/kept/old")]
    upper = [
        file("d/both", b"2"),
        file("d/.wh..wh..opq"),
        file(".wh.gone"),
        file("e/kept/new"),
        file("e/.wh..wh..opq"),
    ]
    apply(root, lower, upper)
    assert tree(root) == {"d": "d", "d/both": "2", "e": "d", "e/kept": "d", "e/kept/new": "x"}


def test_a_whiteout_of_what_is_not_there_does_nothing(root: Path) -> None:
    apply(root, [file("a")], [file("none/.wh.b"), file("none/.wh..wh..opq"), file("a/.wh.b")])
    assert tree(root) == {"a": "x"}


def test_a_later_entry_of_the_same_name_wins(root: Path) -> None:
    apply(root, [file("a", b"1"), file("a", b"2"), folder("b"), file("b", b"3"), file("c"), folder("c")])
    assert tree(root) == {"a": "2", "b": "3", "c": "d"}


def test_writing_over_a_hard_link_leaves_its_other_name_alone(root: Path) -> None:
    apply(root, [file("a", b"1"), hard_link("b", "a")], [file("b", b"2")])
    assert tree(root) == {"a": "1", "b": "2"}


def test_a_hard_link_in_place_of_its_target_s_directory_is_refused(root: Path) -> None:
    with pytest.raises(StudyError, match="replaces the directory of what it links to"):
        apply(root, [file("a/b"), hard_link("a", "a/b")])


def test_hard_links_stay_one_file(root: Path) -> None:
    apply(root, [file("a"), hard_link("b", "/a")])
    assert (root / "a").samefile(root / "b")


def test_modes_do_not_depend_on_the_umask(root: Path) -> None:
    before = os.umask(0o077)
    try:
        apply(root, [file("a/b/c", mode=0o644), folder("d", 0o755), folder("ro", 0o555), file("ro/x")])
    finally:
        os.umask(before)
    closed = 0o555 if os.geteuid() == 0 else 0o755  # a user's tree stays theirs to write
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert modes == {"root": 0o755, "a": 0o755, "b": 0o755, "c": 0o644, "d": 0o755, "ro": closed, "x": 0o644}


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_owners_and_set_id_bits_are_kept(root: Path) -> None:
    kinds = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE)
    apply(
        root, [Entry(f"e{i}", kind=kind, target="x", mode=0o6755, uid=12, gid=34) for i, kind in enumerate(kinds)]
    )
    stats = [(root / f"e{i}").lstat() for i in range(3)]
    assert {(info.st_uid, info.st_gid) for info in stats} == {(12, 34)}
    assert [stat.S_IMODE(info.st_mode) for info in stats[:2]] == [0o6755, 0o6755]


def test_when_an_entry_was_changed_is_kept_to_the_second(root: Path) -> None:
    kinds = {"d": tarfile.DIRTYPE, "d/f": tarfile.REGTYPE, "d/l": tarfile.SYMTYPE, "d/p": tarfile.FIFOTYPE}
    entries = [
        Entry(name, kind=kind, target="f", mode=0o755, changed=1_500_000_000.75 + n)
        for n, (name, kind) in enumerate(kinds.items())
    ]
    apply(root, entries, [file("d/new")])
    apply(root, [entries[0]])
    assert [(root / name).lstat().st_mtime for name in kinds] == [1_500_000_000 + n for n in range(4)]
    assert (root / "d" / "new").stat().st_mtime == 0


def test_no_directory_bears_the_time_of_its_unpacking(root: Path) -> None:
    """Else two unpackings of one image differ, and the engine would hold it twice."""
    named = Entry("d", kind=tarfile.DIRTYPE, mode=0o755, changed=1_500_000_000)
    apply(root, [file("implied/by/entry"), named], [file("d/added")])
    paths = {"": 0, "implied": 0, "implied/by": 0, "d": 1_500_000_000}
    assert {name: (root / name).stat().st_mtime for name in paths} == paths


@pytest.mark.parametrize(
    ("told", "kept"), [("-5", 0), ("nan", 0), ("inf", 0), ("1e300", 2**33), ("1700000000.9", 1_700_000_000)]
)
def test_a_time_that_no_file_has_is_no_error(root: Path, told: str, kept: int) -> None:
    apply(root, [Entry("a", content=b"x", headers=(("mtime", told),)), folder("b")])
    assert (root / "a").stat().st_mtime == kept


@pytest.mark.skipif(os.geteuid() != 0, reason="file capabilities need root")
def test_file_capabilities_are_kept(root: Path) -> None:
    # VFS_CAP_REVISION_2, effective, CAP_NET_BIND_SERVICE (linux/capability.h)
    value = bytes.fromhex("0100000200040000000000000000000000000000")
    header = ("SCHILY.xattr.security.capability", value.decode("utf-8", "surrogateescape"))
    apply(root, [Entry("a", content=b"x", headers=(header, ("SCHILY.xattr.user.other", "no")))])
    assert os.listxattr(root / "a") == ["security.capability"]
    assert os.getxattr(root / "a", "security.capability") == value


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_layers_may_be_compressed(root: Path, tmp_path: Path, mode: str) -> None:
    unpack([write_tar(tmp_path / "layer", [file("a", b"y" * 100_000)], mode)], root)
    assert (root / "a").read_bytes() == b"y" * 100_000


def test_zstd_is_refused_by_name(root: Path, tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(StudyError, match="zstd"):
        unpack([tmp_path / "layer"], root)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.8, 0.99])
def test_an_archive_cut_short_is_refused(root: Path, tmp_path: Path, part: float, *, compressed: bool) -> None:
    entries = [file(f"f{i}", os.urandom(700)) for i in range(20)]
    whole = write_tar(tmp_path / "whole.tar", entries).read_bytes().rstrip(b"\0")
    whole = gzip.compress(whole + bytes(1024)) if compressed else whole
    (tmp_path / "cut.tar").write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(StudyError, match=r"cut\.tar is not a complete tar"):
        unpack([tmp_path / "cut.tar"], root)


def test_an_archive_cut_between_two_entries_is_refused(root: Path, tmp_path: Path) -> None:
    whole = write_tar(tmp_path / "whole.tar", [file("a"), file("b")]).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:1024])
    with pytest.raises(StudyError, match="before its end mark"):
        unpack([tmp_path / "cut.tar"], root)


def test_too_many_entries_and_too_many_bytes_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Budget, "__init__", _small_budget)
    with pytest.raises(StudyError, match="more than"):
        apply(root, [file("a")], [file("b"), file("c"), file("d")])
    with pytest.raises(StudyError, match="more than"):
        apply(root, [file("a", b"x" * 101)])


def _small_budget(budget: module._Budget) -> None:
    budget.entries, budget.size_bytes = 3, 100


def test_a_header_that_claims_gigabytes_is_not_read_into_memory(root: Path, tmp_path: Path) -> None:
    claim = tarfile.TarInfo("x")
    claim.type, claim.size = tarfile.XHDTYPE, 8 << 30
    (tmp_path / "bomb.tar").write_bytes(claim.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
    with pytest.raises(StudyError, match="claims"):
        unpack([tmp_path / "bomb.tar"], root)


NAMES = st.sampled_from(["a", "b", "a/b", "a/b/c", "b/a", "//a", "./b", ".wh.a", "a/.wh..wh..opq", "a/.wh.b"])


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    kind = draw(
        st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
    )
    targets = ["a", "b", "/", "..", "../..", "a/b", "OUT", "/OUT", "../outside", "b/../outside", "OUT/file", "//"]
    content = b"new" if kind == tarfile.REGTYPE else b""
    mode = draw(st.sampled_from([0o777, 0o4755, 0o000]))
    return Entry(draw(NAMES), kind=kind, content=content, target=draw(st.sampled_from(targets)), mode=mode)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layers=st.lists(st.lists(entries(), max_size=8), min_size=1, max_size=3))
@example(layers=[[link("a", "/OUT"), file("a/b")]])
def test_no_image_at_all_touches_what_is_outside(
    tmp_path_factory: pytest.TempPathFactory, layers: list[list[Entry]]
) -> None:
    base = tmp_path_factory.mktemp("any")
    root, outside = base / "root", base / "outside"
    for path in (root, outside):
        path.mkdir()
    (outside / "file").write_text("kept")
    (outside / "file").chmod(0o640)
    outside.chmod(OUTSIDE_MODE)
    aimed = [[_at(entry, outside) for entry in layer] for layer in layers]
    with contextlib.suppress(TareError):  # refused, which is as good
        apply(root, *aimed)
    assert untouched(outside)
    left = {path.name for path in base.iterdir()}
    assert left <= {"root", "outside", *(f"layer{i}.tar" for i in range(3))}


def _at(entry: Entry, outside: Path) -> Entry:
    return Entry(**{**vars(entry), "target": entry.target.replace("OUT", str(outside))})


@settings(max_examples=200, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_one_error_and_ends(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    base = tmp_path_factory.mktemp("damaged")
    (base / "root").mkdir()
    sound = [folder("d"), file("d/a", b"z" * 600), link("l", "d"), hard_link("h", "d/a"), file("n" * 120)]
    content = bytearray(write_tar(base / "layer.tar", sound).read_bytes()[: 12 * 512])
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (base / "layer.tar").write_bytes(_with_checksums(bytes(content)))
    with contextlib.suppress(TareError, OSError):  # OSError: a name too long; `prepare` makes a TareError of it
        unpack([base / "layer.tar"], base / "root")


def _with_checksums(content: bytes) -> bytes:
    """Every block given a right header checksum, so that damage gets past the first check."""
    blocks = [content[i : i + 512] for i in range(0, len(content), 512)]
    mended = []
    for block in blocks:
        if block[257:262] == b"ustar":
            total = sum(block[:148]) + sum(block[156:]) + 8 * 0x20
            block = block[:148] + b"%06o\0 " % total + block[156:]  # noqa: PLW2901 - the sum stands in the block itself
        mended.append(block)
    return b"".join(mended)
