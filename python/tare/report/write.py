"""Writing a report: whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tare.errors import StudyError


def refuse_place(path: Path | None) -> None:
    """Raise `StudyError` where a report could not be put, before any work is done; `None`: nowhere."""
    if path is None:
        return
    if os.path.isdir(path):  # noqa: PTH112 - `Path.is_dir` raises where a folder may not be entered
        raise _refusal(path, "it is a folder")
    if not os.path.isdir(path.parent):  # noqa: PTH112 - likewise
        raise _refusal(path, f"there is no folder {path.parent}")


def write(content: str | bytes, path: Path) -> None:
    """Put `content` at `path` in one step; a reader never sees half of it. Raises `StudyError` where it cannot."""
    refuse_place(path)
    draft = path.with_name(f".{os.getpid()}-{path.name[:60]}")
    try:
        draft.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", errors="replace"))
        draft.replace(path)
    except OSError as error:
        raise _refusal(path, error.strerror or "unknown reason") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _refusal(path: Path, why: str) -> StudyError:
    return StudyError(
        f"the report cannot be written to {path}: {why}", hint="name a file in a folder that is there"
    )
