from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tare.images import ImageConfig
from tare.images.digest import Entry, first_difference, image_digest, list_tree, parse_listing
from tare.images.engine_image import pack
from tare.images.oci.unpack import unpack

CONFIG = ImageConfig(entrypoint=("/bin/db",), env=(("PATH", "/bin"),))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "conf").write_text("a=1\n")
    (root / "etc" / "link").symlink_to("conf")
    os.mkfifo(root / "pipe")
    return root


def digest(root: Path, config: ImageConfig = CONFIG) -> str:
    return image_digest(list_tree(root), config)


def test_the_digest_is_that_of_configuration_and_listing_and_of_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0o640)
    tmp_path.chmod(0o755)
    uid, gid = os.geteuid(), os.getegid()
    config = (
        '{"command": [], "data_dir": null, "entrypoint": ["/bin/db"], "env": [["PATH", "/bin"]], '
        '"user": "", "workdir": "/"}\n'
    )
    content = hashlib.sha256(b"x").hexdigest()
    listing = f'[".","directory",493,{uid},{gid},"",""]\n["a","file",416,{uid},{gid},"{content}",""]\n'
    assert digest(tmp_path) == hashlib.sha256((config + listing).encode()).hexdigest()


def test_times_and_shared_inodes_do_not_count(root: Path) -> None:
    (root / "etc" / "same").write_text("a=1\n")
    before = digest(root)
    os.utime(root / "etc" / "conf", (1, 1))
    (root / "etc" / "same").unlink()
    (root / "etc" / "same").hardlink_to(root / "etc" / "conf")
    assert digest(root) == before


def _swap(root: Path) -> None:
    (root / "etc" / "link").unlink()
    (root / "etc" / "link").symlink_to("/etc/conf")


def _make_file(root: Path) -> None:
    (root / "pipe").unlink()
    (root / "pipe").touch()


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "content": (lambda root: (root / "etc/conf").write_text("a=2\n"), 'has "/etc/conf" with other content'),
    "mode": (
        lambda root: (root / "etc/conf").chmod(0o4755),
        'has "/etc/conf" with mode 4755 instead of 0644',
    ),
    "a directory's mode": (lambda root: (root / "etc").chmod(0o700), 'has "/etc" with mode 0700 instead of 0755'),
    "the root's mode": (lambda root: root.chmod(0o711), 'has "/" with mode 0711 instead of 0755'),
    "a target": (_swap, 'has "/etc/link" leading elsewhere'),
    "a new file": (lambda root: (root / "new").touch(), 'has "/new", which it should not have'),
    "a new empty directory": (lambda root: (root / "var").mkdir(), 'has "/var", which it should not have'),
    "a missing file": (lambda root: (root / "pipe").unlink(), 'lacks "/pipe"'),
    "a kind": (
        _make_file,
        'has a file "/pipe" that should be a fifo',
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_every_other_change_changes_the_digest_and_is_told(
    root: Path, change: Callable[[Path], object], message: str
) -> None:
    for path in (root, root / "etc"):
        path.chmod(0o755)
    (root / "etc" / "conf").chmod(0o644)
    wanted, before = tuple(list_tree(root)), digest(root)
    change(root)
    assert digest(root) != before
    assert first_difference(wanted, list_tree(root)) == message


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
def test_an_owner_counts(root: Path) -> None:
    wanted = tuple(list_tree(root))
    os.lchown(root / "etc" / "link", 12, 34)
    assert first_difference(wanted, list_tree(root)) == 'has "/etc/link" owned by 12:34 instead of 0:0'


def test_only_the_first_of_many_differences_is_told(root: Path) -> None:
    wanted = tuple(list_tree(root))
    (root / "b").touch()
    (root / "a").touch()
    assert first_difference(wanted, list_tree(root)) == 'has "/a", which it should not have'


def test_the_configuration_counts(root: Path) -> None:
    assert digest(root) != digest(root, replace(CONFIG, user="db"))


def test_what_would_spoil_a_line_is_told_on_one(root: Path) -> None:
    wanted = tuple(list_tree(root))
    (root / os.fsdecode(b"a\n\xff\x1b[31m")).touch()
    text = first_difference(wanted, list_tree(root))
    assert text is not None
    assert text.isascii()
    assert text.isprintable()


NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: (
        b"/" not in name and b"\0" not in name and name not in (b".", b"..") and not name.startswith(b".wh.")
    )
)
LEAVES = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=40), st.sampled_from([0o644, 0o600, 0o755, 0o444])),
    st.tuples(st.just("link"), NAMES, st.just(0)),
    st.tuples(st.just("fifo"), st.just(b""), st.just(0o640)),
)
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=12)


def plant(root: bytes, tree: object) -> None:
    assert isinstance(tree, dict)
    for name, node in tree.items():
        path = os.path.join(root, name)  # noqa: PTH118 - bytes
        if isinstance(node, dict):
            os.mkdir(path, 0o755)  # noqa: PTH102 - bytes
            plant(path, node)
            continue
        kind, content, mode = node
        if kind == "link":
            os.symlink(content, path)  # noqa: PTH211 - bytes
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            Path(os.fsdecode(path)).write_bytes(content)
        if kind != "link":
            os.chmod(path, mode)  # noqa: PTH101 - bytes


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=st.dictionaries(NAMES, TREES, max_size=5))
def test_any_tree_comes_back_from_its_archive_and_its_listing(
    tmp_path_factory: pytest.TempPathFactory, tree: object
) -> None:
    base = tmp_path_factory.mktemp("any")
    root, again = base / "root", base / "again"
    for path in (root, again):
        path.mkdir()
    root.chmod(0o755)
    plant(os.fsencode(root), tree)
    pack(root, base / "flat.tar")
    unpack([base / "flat.tar"], again)
    entries = tuple(list_tree(root))
    assert first_difference(entries, list_tree(again)) is None
    assert digest(root) == digest(again)
    assert tuple(parse_listing("".join(entry.line for entry in entries))) == entries


def test_the_same_tree_gives_the_same_archive(root: Path, tmp_path: Path) -> None:
    for name, changed in (("1.tar", 5), ("2.tar", 5.75), ("3.tar", 6)):
        for path in root.rglob("*"):
            os.utime(path, (9, changed), follow_symlinks=False)
        pack(root, tmp_path / name)
    one, same, other = ((tmp_path / f"{n}.tar").read_bytes() for n in (1, 2, 3))
    assert one == same != other


def test_hard_links_stay_one_file_in_the_archive(root: Path, tmp_path: Path) -> None:
    (root / "a").hardlink_to(root / "etc" / "conf")
    pack(root, tmp_path / "flat.tar")
    with tarfile.open(tmp_path / "flat.tar") as tar:
        assert sum(member.islnk() for member in tar) == 1


def test_a_listing_that_is_none_is_an_error() -> None:
    for text in ("{}", "[1]", "no json"):
        with pytest.raises((ValueError, TypeError)):
            tuple(parse_listing(text))
    assert tuple(parse_listing("")) == tuple[Entry, ...]()


@pytest.mark.parametrize("name", [b"BZh", b"\x1f\x8b\x08", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"])
def test_a_file_named_like_the_start_of_a_compressed_one_is_a_file(tmp_path: Path, name: bytes) -> None:
    for side in ("root", "again"):
        (tmp_path / side).mkdir()
    path = tmp_path / "root" / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    pack(tmp_path / "root", tmp_path / "flat.tar")
    unpack([tmp_path / "flat.tar"], tmp_path / "again")
    assert (tmp_path / "again" / os.fsdecode(name)).is_file()
