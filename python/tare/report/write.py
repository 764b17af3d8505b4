"""Writing a report: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from tare.errors import StudyError


def write(content: str | bytes, path: Path) -> None:
    """Put `content` at `path` in one step; a reader never sees half of it. Raises `StudyError` where it cannot."""
    draft = path.with_name(f".{os.getpid()}-{path.name[:60]}")
    try:
        draft.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", errors="replace"))
        draft.replace(path)
    except OSError as error:
        raise StudyError(f"the report cannot be written to {path}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
