"""Write a report: a regular file completely or not at all; directly into a device, a pipe or our own stdout."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from tare.errors import StudyError


def refuse_place(path: Path | None) -> None:
    """Raise `StudyError` if no report can be written there, before any work is done; `None`: nowhere to write."""
    if path is None:
        return
    try:
        mode = _status(path)
    except OSError as error:
        raise _refusal(path, error.strerror or "unknown reason") from error
    if mode is not None:
        for is_kind, what in ((stat.S_ISDIR, "a folder"), (stat.S_ISSOCK, "a socket"), (stat.S_ISBLK, "a disk")):
            if is_kind(mode.st_mode):
                raise _refusal(path, f"it is {what}")
    elif not os.path.isdir(folder := _target(path).parent):  # noqa: PTH112 - `Path.is_dir` raises where a folder may not be entered
        raise _refusal(path, f"there is no folder {folder}")


def write(content: str | bytes, path: Path) -> None:
    """Write `content` to `path`. Raises `StudyError` on failure.

    A regular file is replaced in one step and keeps its mode; links are followed and kept. Other files (a device, a
    pipe) and this process's own output are written into, never replaced.
    """
    refuse_place(path)
    data = content if isinstance(content, bytes) else content.encode("utf-8", errors="replace")
    try:
        there = _status(path)
        if there is None or (stat.S_ISREG(there.st_mode) and not _is_own_output(there)):
            _replace(_target(path), data, there)
        else:
            _write_into(path, data)
    except OSError as error:
        why = "no program reads from this pipe" if error.errno == errno.ENXIO else error.strerror
        raise _refusal(path, why or "unknown reason") from error


def _replace(target: Path, data: bytes, there: os.stat_result | None) -> None:
    draft = target.with_name(f".{target.name[:60]}-{uuid4().hex[:8]}")
    made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(made, "wb") as file:
            file.write(data)
            if there is not None:
                os.fchmod(made, stat.S_IMODE(there.st_mode))
            file.flush()
            os.fsync(made)
        draft.replace(target)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _write_into(path: Path, data: bytes) -> None:
    """Write without waiting for a pipe's reader; ENXIO if there is none."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "wb", buffering=0) as file:
        os.set_blocking(file.fileno(), True)
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]


def _status(path: Path) -> os.stat_result | None:
    """Return the status of the link's target; `None` if there is none."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_own_output(there: os.stat_result) -> bool:
    """Whether stdout or stderr of this process is that file, as with `--output /dev/stdout >> file`."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if os.path.samestat(there, os.fstat(descriptor)):
                return True
    return False


def _refusal(path: Path, why: str) -> StudyError:
    return StudyError(f"cannot write the report to {path}: {why}", hint="name a file in an existing folder")
