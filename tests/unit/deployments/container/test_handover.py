"""Files change to the numbers of a user namespace and back: once each way, links themselves, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.deployments.container import handover
from tare.deployments.container.handover import MARK, hand, inside, main, outside, parse

UIDS = "0:990:1,1:100000:65536"
GIDS = "0:980:1,1:200000:65536"
Owner = tuple[int, int]


class Files:
    """Owners and marks of files as only root could set them."""

    def __init__(self, root: Path) -> None:
        self.root, self.marked = root, set[str]()
        self.owners: dict[str, Owner] = {}

    def lstat(self, path: str) -> SimpleNamespace:
        uid, gid = self.owners[path]
        return SimpleNamespace(st_uid=uid, st_gid=gid)

    def lchown(self, path: str, uid: int, gid: int) -> None:
        self.owners[path] = (uid, gid)

    def list_marks(self, path: str) -> list[str]:
        return [MARK] if path in self.marked else []

    def mark(self, path: str, name: str, value: bytes) -> None:
        assert (name, value) == (MARK, b"1")
        self.marked.add(path)

    def unmark(self, path: str, name: str) -> None:
        assert name == MARK
        self.marked.remove(path)

    def relative_owners(self) -> dict[str, Owner]:
        return {os.path.relpath(path, self.root): owner for path, owner in self.owners.items()}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """A data directory of user 900 with a file of root's, and a link that leads out of it."""
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "deep" / "file").touch()
    (data / "link").symlink_to("/etc/passwd")
    made = Files(data)
    for name in (".", "deep", "link"):
        made.owners[str(data / name)] = (900, 901)
    made.owners[str(data / "deep" / "file")] = (0, 0)
    fakes = {
        "lstat": made.lstat,
        "lchown": made.lchown,
        "listxattr": made.list_marks,
        "setxattr": made.mark,
        "removexattr": made.unmark,
    }
    monkeypatch.setattr(handover, "os", SimpleNamespace(walk=os.walk, **fakes))
    return made


def test_numbers_go_out_and_come_in_by_the_ranges() -> None:
    ranges = parse(UIDS)
    assert ranges == [(0, 990, 1), (1, 100000, 65536)]
    for number, out in ((0, 990), (1, 100000), (900, 100899), (65536, 165535)):
        assert (outside(ranges, number), inside(ranges, out)) == (out, number)
    assert outside(ranges, 65537) is None
    assert [inside(ranges, number) for number in (0, 989, 991, 99999, 165536)] == [None] * 5


def test_a_tree_is_given_and_taken_back_as_it_was(files: Files) -> None:
    before = files.relative_owners()
    hand(str(files.root), parse(UIDS), parse(GIDS), give=True)
    assert files.relative_owners() == {
        ".": (100899, 200900),
        "deep": (100899, 200900),
        "link": (100899, 200900),
        "deep/file": (990, 980),
    }
    assert files.marked == {str(files.root)}
    hand(str(files.root), parse(UIDS), parse(GIDS), give=False)
    assert files.relative_owners() == before
    assert files.marked == set()


@pytest.mark.parametrize("way", ["give", "take"])
def test_a_second_call_changes_nothing(files: Files, way: str) -> None:
    words = (UIDS, GIDS, str(files.root))
    assert main("give", *words) == 0
    assert main(way, *words) == 0
    handed_over = files.relative_owners()
    assert main(way, *words) == 0
    assert files.relative_owners() == handed_over


def test_what_came_from_outside_meanwhile_stays_as_it_is(files: Files) -> None:
    hand(str(files.root), parse(UIDS), parse(GIDS), give=True)
    files.owners[str(files.root / "deep" / "file")] = (0, 0)
    hand(str(files.root), parse(UIDS), parse(GIDS), give=False)
    assert files.relative_owners()["deep/file"] == (0, 0)


def test_a_number_that_the_user_lacks_is_one_sentence_and_nothing_is_changed(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.owners[str(files.root)] = (70_000, 0)  # the last that is looked at
    before = files.relative_owners()
    assert main("give", UIDS, GIDS, str(files.root)) == 1
    assert (files.relative_owners(), files.marked) == (before, set())
    output = capsys.readouterr().err
    assert output == f"{files.root} belongs to 70000:0, which the user's ranges do not contain\n"
