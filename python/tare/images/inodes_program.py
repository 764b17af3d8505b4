"""Record the inodes of a tree, and find later changes: it reads no file, so it takes milliseconds.

This file is also run on other hosts by their own Python, so it uses the standard library only:

    python3 -I -S - take ROOT FILE       write the inode snapshot of ROOT to FILE
    python3 -I -S - compare ROOT FILE    print JSON: up to three [path, what], or null where there is no FILE

No program can set a ctime (inode(7)), so files that were changed and changed back are found too, unless root has
set the clock back or written to the disk itself.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator

_MOST_TOLD = 3


def rows(root: str) -> Iterator[tuple[bytes, bytes]]:
    """Each path below `root` (`.` for itself) with its inode, kind and mode, owner, size, mtime and ctime."""
    yield b".", _facts(os.lstat(root))
    todo = [b""]
    while todo:
        folder = todo.pop()
        with os.scandir(os.path.join(os.fsencode(root), folder)) as entries:  # noqa: PTH118 - bytes
            for entry in entries:
                path = os.path.join(folder, entry.name)  # noqa: PTH118 - bytes
                about = entry.stat(follow_symlinks=False)
                yield path, _facts(about)
                if stat.S_ISDIR(about.st_mode):
                    todo.append(path)


def take(root: str, file: str) -> None:
    """Write the inode snapshot, completely or not at all."""
    with open(f"{file}.part", "wb") as part:  # noqa: PTH123 - run by any Python
        part.writelines(b"%s %s\0" % (facts, path) for path, facts in rows(root))
    os.replace(f"{file}.part", file)  # noqa: PTH105 - run by any Python


def compare(root: str, file: str) -> list[tuple[str, str]] | None:
    """Differences from the inode snapshot: (path, `changed`, `new` or `gone`). `None` if there is none."""
    try:
        with open(file, "rb") as snapshot:  # noqa: PTH123 - run by any Python
            lines = snapshot.read().split(b"\0")[:-1]
    except FileNotFoundError:
        return None
    kept = {path: facts for facts, _, path in (line.partition(b" ") for line in lines)}
    present = dict(rows(root))
    changes = []
    for path in sorted(kept.keys() | present.keys()):
        if kept.get(path) != present.get(path):
            what = "new" if path not in kept else "gone" if path not in present else "changed"
            changes.append((path.decode(errors="backslashreplace"), what))
    # A directory changes with its entries, so changed entries are more informative.
    return sorted(changes, key=lambda each: (each[1] == "changed", each[0] == ".", -each[0].count("/")))[
        :_MOST_TOLD
    ]


def _facts(about: os.stat_result) -> bytes:
    numbers = (about.st_ino, about.st_mode, about.st_uid, about.st_gid, about.st_size)
    return ",".join(str(each) for each in (*numbers, about.st_mtime_ns, about.st_ctime_ns)).encode()


if __name__ == "__main__":
    if sys.argv[1] == "take":
        take(*sys.argv[2:])
    else:
        sys.stdout.write(json.dumps(compare(*sys.argv[2:])))
