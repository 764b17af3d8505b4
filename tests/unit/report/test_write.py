"""Reports reach their file whole or not at all."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tare.errors import StudyError
from tare.report.write import write


def test_a_report_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    write("new é \ud800", target)
    assert target.read_text(encoding="utf-8") == "new é ?"
    assert list(tmp_path.iterdir()) == [target]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(StudyError, match="cannot write the report"):
        write("new", tmp_path / "report.html")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_place_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path, why in (
        (Path(), "a folder"),
        (tmp_path, "a folder"),
        (file / "x", "no folder"),
        (Path("/no/x"), "no folder"),
    ):
        with pytest.raises(StudyError, match=why):
            write("new", path)
    assert list(tmp_path.iterdir()) == [file]


ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")


@ROOT_ONLY
@pytest.mark.parametrize(("minor", "why"), [(3, None), (7, "No space left")], ids=["null", "full"])
def test_a_device_is_written_into_and_stays_a_device(tmp_path: Path, minor: int, why: str | None) -> None:
    node = tmp_path / "node"
    os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    if why is None:
        write("new", node)
    else:
        with pytest.raises(StudyError, match=why):
            write("new", node)
    assert stat.S_ISCHR(node.lstat().st_mode)
    assert list(tmp_path.iterdir()) == [node]


@ROOT_ONLY
def test_a_disk_is_refused(tmp_path: Path) -> None:
    node = tmp_path / "node"
    os.mknod(node, 0o600 | stat.S_IFBLK, os.makedev(7, 255))
    with pytest.raises(StudyError, match="it is a disk"):
        write("new", node)
    assert stat.S_ISBLK(node.lstat().st_mode)


def test_a_pipe_is_written_into_and_one_without_a_reader_is_told(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    with pytest.raises(StudyError, match="no program reads"):
        write("nobody reads", pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # so that the writer finds a reader at once
    reader.start()
    try:
        write("x" * 50_000, pipe)
    finally:
        reader.join(0.2)
        left = b""
        if reader.is_alive():  # on a busy machine it may come only now, and would wait for a writer for ever
            left = os.read(descriptor, 100_000)
            os.close(os.open(pipe, os.O_WRONLY))
            reader.join()
        os.close(descriptor)
    assert len(b"".join(read) + left) == 50_000
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(StudyError, match="it is a socket"):
            write("new", tmp_path / "socket")


@pytest.mark.parametrize("exists", [True, False], ids=["file", "dangling"])
def test_a_link_is_followed_and_stays(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "report.html", tmp_path / "link"
    if exists:
        target.write_text("old")
        target.chmod(0o640)
    link.symlink_to("far/report.html")
    write("new", link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not exists or stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list((tmp_path / "far").iterdir()) == [target]


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(StudyError, match="symbolic links"):
        write("new", tmp_path / "a")


_PROGRAM = """
import sys
from pathlib import Path
from tare.report.write import write
write("new", Path("/dev/stdout"))
"""


@pytest.mark.parametrize("before", ["", "before"], ids=["empty", "appended"])
def test_its_own_output_is_appended_to_and_not_replaced(tmp_path: Path, before: str) -> None:
    target = tmp_path / "out"
    target.write_text(before)
    number = target.stat().st_ino
    with target.open("a") as file:
        subprocess.run([sys.executable, "-c", _PROGRAM], stdout=file, check=True, timeout=60)
    assert (target.read_text(), target.stat().st_ino) == (before + "new", number)


def test_its_own_output_may_be_a_pipe() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"new"
