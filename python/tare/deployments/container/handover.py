"""Change owners of directories to the IDs of a user namespace, and back. Run on the host by its own Python.

    python3 -I -S - give|take UIDS GIDS DIRECTORY...

UIDS and GIDS: `INSIDE:OUTSIDE:COUNT` joined by commas, as /proc/PID/uid_map has them. A file of user 900 then
belongs to the host's ID for 900 of the namespace, so that a program finds its files as in any other container. A
mark on each directory prevents a second call from doing it twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

MARK = "trusted.tare.given"
"""Extended attribute that only root sees (xattr(7)), and no program in the namespace."""
Ranges = list[tuple[int, int, int]]


def parse(text: str) -> Ranges:
    """Parse ranges such as `0:990:1,1:100000:65536`."""
    words = [word.split(":") for word in text.split(",")]
    return [(int(first), int(out), int(count)) for first, out, count in words]


def outside(ranges: Ranges, number: int) -> int | None:
    """The host's ID for an ID of the namespace; `None` if the namespace does not have it."""
    return next((out + number - first for first, out, count in ranges if first <= number < first + count), None)


def inside(ranges: Ranges, number: int) -> int | None:
    """The namespace's ID for an ID of the host; `None` if it lies outside the namespace's ranges."""
    return next((first + number - out for first, out, count in ranges if out <= number < out + count), None)


def hand(directory: str, uids: Ranges, gids: Ranges, *, give: bool) -> None:
    """Change owners of all entries of a directory; links themselves are changed, not their targets.

    Raises `LookupError`, and changes nothing, if `give` meets an owner that the namespace has no ID for. When
    taking back, files with an owner outside the ranges stay as they are.
    """
    if give == _handed_over(directory):
        return
    change = outside if give else inside
    changes = list[tuple[str, int, int]]()  # all are computed before the first is made
    for path in _below(directory):
        status = os.lstat(path)
        uid, gid = change(uids, status.st_uid), change(gids, status.st_gid)
        if uid is None or gid is None:
            if not give:
                continue
            raise LookupError(
                f"{path} belongs to {status.st_uid}:{status.st_gid}, which the user's ranges do not contain"
            )
        changes.append((path, uid, gid))
    for path, uid, gid in changes:
        os.lchown(path, uid, gid)
    if give:
        os.setxattr(directory, MARK, b"1")
    else:
        os.removexattr(directory, MARK)


def _handed_over(directory: str) -> bool:
    return MARK in os.listxattr(directory)


def _below(directory: str) -> Iterator[str]:
    """All paths of a tree. The directory comes last, so that its mark shows that the whole tree is done."""
    for place, directories, files in os.walk(directory, topdown=False):
        for name in (*directories, *files):
            yield f"{place}/{name}"
    yield directory


def main(way: str, uids: str, gids: str, *directories: str) -> int:
    """Run the command line."""
    for directory in directories:
        try:
            hand(directory, parse(uids), parse(gids), give=way == "give")
        except (OSError, LookupError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
