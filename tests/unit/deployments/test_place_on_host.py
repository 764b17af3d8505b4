"""Where on the host lies what a process sees at a path: by device and root of the mounts, and by inode."""

from __future__ import annotations

import pytest

from tare.deployments.mounts import place_on_host
from tare.sites import Completed
from tare.sites.fake import FakeHost

HOST = (
    b"21 1 254:0 / / rw - ext4 /dev/vda rw\n"
    b"40 21 7:3 / /vols/a rw - ext4 /dev/loop3 rw\n"
    b"41 21 7:3 /sub /vols/b rw - ext4 /dev/loop3 rw\n"
)


def place(mount: bytes, inodes: bytes = b"1:1\n1:1\n") -> str | None:
    host = FakeHost(
        files={"/proc/9/mountinfo": b"9 1 0:5 / / rw - overlay o rw\n" + mount, "/proc/self/mountinfo": HOST},
        answers={("stat",): Completed((), 0, inodes)},
    )
    seen = place_on_host(host, 9, "/volume")
    return None if seen is None else seen.path


@pytest.mark.parametrize(
    ("mount", "path"),
    [
        (b"90 9 7:3 / /volume rw - ext4 /dev/loop3 rw\n", "/vols/a"),
        (b"90 9 7:3 /x/y /volume rw - ext4 /dev/loop3 rw\n", "/vols/a/x/y"),
        (b"90 9 7:3 /sub/z /volume rw - ext4 /dev/loop3 rw\n", "/vols/b/z"),
        (b"90 9 7:3 /subway /volume rw - ext4 /dev/loop3 rw\n", "/vols/a/subway"),
        (b"90 9 254:0 /srv/v /volume rw - ext4 /dev/vda rw\n", "/srv/v"),
        (b"90 9 0:99 / /volume rw - tmpfs tmpfs rw\n", None),
        (b"", None),
    ],
)
def test_a_mount_is_found_by_what_it_shows_of_its_file_system(mount: bytes, path: str | None) -> None:
    assert place(mount) == path


def test_a_path_that_another_mount_covers_is_not_taken_for_it() -> None:
    assert place(b"90 9 254:0 /srv/v /volume rw - ext4 /dev/vda rw\n", b"1:1\n7:2\n") is None
