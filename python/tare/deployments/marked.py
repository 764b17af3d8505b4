"""Look for, or remove, what a ledger lists at a path, if it bears tare's mark. Run on the host by its own Python.

    python3 -I -S - look PATH HOME      print `there` or `gone`
    python3 -I -S - remove PATH HOME    remove it

Each directory on the way is opened without following a link, and what is removed is in the directory that was
opened: a link that is put in the way meanwhile leads nowhere. What is not tare's is left, with exit code 1 and the
reason. crates/agent/src/mark.rs has the same rules.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys

MARK = ".tare"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LONGEST = 64


class Foreign(Exception):
    """It is not tare's; the reason."""


def opened(path: str, home: str) -> tuple[int, str] | None:
    """Directory that holds the path, opened, and the name in it; `None` if nothing is there."""
    inside = path.startswith(f"{home}/")
    root = home if inside else "/"
    *above, name = path[len(root) :].strip("/").split("/")
    try:
        top = handle = os.open(root, _FOLDER)  # the home itself may be reached by links
        for part in above:
            handle = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
        os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise Foreign("a part of it is a link") from error
    if inside and text_of(top) != str(os.fstat(top).st_ino):
        raise Foreign(f"{home} bears no mark of tare's")
    if not inside and not is_marked(handle, name):
        raise Foreign("it bears no mark of tare's")
    return handle, name


def text_of(folder: int) -> str:
    """Text of the mark in an opened directory; empty without one."""
    try:
        mark = os.open(MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return ""
    with os.fdopen(mark, "rb") as file:
        return file.read(_LONGEST).decode(errors="replace").strip()


def is_marked(above: int, name: str) -> bool:
    """Whether a directory outside a home bears its mark. One without any entry was being made by a killed tare."""
    try:
        folder = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except OSError:
        return False
    about, text = os.fstat(folder), text_of(folder)
    return text == f"{about.st_dev}:{about.st_ino}" if text else set(os.listdir(folder)) <= {MARK}  # noqa: PTH208 - of a descriptor


def remove(above: int, name: str) -> int:
    """Remove it with rm(1), which follows no link below; return rm's exit code."""
    about = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISDIR(about.st_mode) and about.st_dev != os.fstat(above).st_dev:
        raise Foreign("a file system is mounted there")
    place = f"/proc/self/fd/{above}/"
    words = ["rm", "-rf", "--one-file-system", "--", f"{place}{name}"]
    done = subprocess.run(words, pass_fds=(above,), stderr=subprocess.PIPE, check=False)
    sys.stderr.write(done.stderr.decode(errors="replace").replace(place, ""))
    return done.returncode


def main(verb: str, path: str, home: str) -> int:
    """Return the exit code."""
    try:
        place = opened(path, home)
        if verb == "remove" and place is not None:
            return remove(*place)
    except Foreign as why:
        sys.stderr.write(f"{why}, so it was left unchanged\n")
        return 1
    sys.stdout.write("gone" if place is None else "there")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
