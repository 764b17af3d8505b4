"""A directory that somebody else made leads to no file outside of it, and no FIFO in it keeps a reader waiting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.analyze.hosts import OtherHost
from tare.analyze.views.summary import read_samples
from tare.errors import StoreError
from tare.monitors.profile.stacks import read_facts
from tare.plain_files import must_be_plain, open_plain
from tare.store.trace import read_trace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with a file, a file below a directory, links to both, and a FIFO; a file beside it."""
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "file").write_text("file")
    (root / "folder" / "below").write_text("below")
    (root / "to-file").symlink_to("file")
    (root / "to-folder").symlink_to("folder")
    os.mkfifo(root / "fifo")
    (tmp_path / "outside").write_text("outside")
    return root


def test_plain_files_are_read_also_in_a_directory_that_is_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(root)
    for name, content in (("file", b"file"), ("folder/below", b"below")):
        with open_plain(tmp_path / "mine", name) as file:
            assert file.read() == content


@pytest.mark.parametrize(
    "name",
    ["to-file", "to-folder/below", "../outside", "folder/../../outside", "fifo", "folder", "missing", "", "/"],
)
def test_all_else_is_an_error_and_leaves_no_descriptor_open(root: Path, name: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - the number depends on what is there
        open_plain(root, name)
    assert not [fd for fd in Path("/proc/self/fd").iterdir() if os.path.realpath(fd).startswith(str(root))]


@pytest.mark.parametrize("name", ["to-file", "to-folder/below", "fifo", "fifo/below", ""])
def test_a_path_over_or_above_a_link_or_fifo_is_refused(root: Path, name: str) -> None:
    with pytest.raises(StoreError, match=r"is a link, and stores have no links|is not a regular file"):
        must_be_plain(root, name)


@pytest.mark.parametrize("name", ["file", "folder", "folder/below", "missing", "file/below"])
def test_plain_and_missing_paths_pass(root: Path, name: str) -> None:
    must_be_plain(root, name)


def a_trace(folder: Path) -> object:
    (folder / "trace.json").write_text('{"header": {"trace_version": 1}}')
    return read_trace(folder)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("trace.json", read_trace),
        ("cpu.parquet", a_trace),
        ("mpstat.parquet", lambda folder: read_samples(folder / "mpstat.parquet")),
        ("profile.parquet", lambda folder: read_facts(folder / "profile.parquet")),
    ],
)
def test_a_fifo_keeps_no_reader_waiting(tmp_path: Path, name: str, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(StoreError, match=f"{name} is not a regular file"):
        read(tmp_path)


def test_the_name_of_a_node_leads_to_no_trace_outside_of_its_run() -> None:
    assert OtherHost("sut-2", "b", 0.0).trace == "monitors/sut-2-host/trace"
    with pytest.raises(StoreError, match="a raw file named"):
        _ = OtherHost("../../../../thesis", "b", 0.0).trace
