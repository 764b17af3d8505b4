"""Hands directories to the numbers of a user namespace, and takes them back. Run on the host by its own Python.

    python3 -I -S - give|take UIDS GIDS DIRECTORY...

UIDS and GIDS: `INSIDE:OUTSIDE:COUNT` joined by commas, as /proc/PID/uid_map has them. What belongs to 900 then
belongs to the host's number of the namespace's 900, so that a program finds its files as in any other container.
A mark on each directory keeps a second call from doing it twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

MARK = "trusted.tare.given"
"""Only root sees it (xattr(7)); what runs in the namespace does not."""
Ranges = list[tuple[int, int, int]]


def parse(text: str) -> Ranges:
    """`0:990:1,1:100000:65536` → its ranges."""
    words = [word.split(":") for word in text.split(",")]
    return [(int(first), int(out), int(count)) for first, out, count in words]


def outside(ranges: Ranges, number: int) -> int | None:
    """The host's number of one inside, `None` where the namespace has none."""
    return next((out + number - first for first, out, count in ranges if first <= number < first + count), None)


def inside(ranges: Ranges, number: int) -> int | None:
    """The reverse."""
    return next((first + number - out for first, out, count in ranges if out <= number < out + count), None)


def hand(directory: str, uids: Ranges, gids: Ranges, *, give: bool) -> None:
    """Change owners below a directory, links themselves and not what they lead to.

    `LookupError` where the namespace has no number for one that is given, and then none is changed; what came from
    outside stays as it is.
    """
    if give == _given(directory):
        return
    change = outside if give else inside
    changes = list[tuple[str, int, int]]()  # all are known before the first is made
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


def _given(directory: str) -> bool:
    return MARK in os.listxattr(directory)


def _below(directory: str) -> Iterator[str]:
    """All of a tree, the directory itself last, so that its mark shows that all of it was done."""
    for place, directories, files in os.walk(directory, topdown=False):
        for name in (*directories, *files):
            yield f"{place}/{name}"
    yield directory


def main(way: str, uids: str, gids: str, *directories: str) -> int:
    """The words of the command line."""
    for directory in directories:
        try:
            hand(directory, parse(uids), parse(gids), give=way == "give")
        except (OSError, LookupError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
