"""Root file systems that several images start from, kept beside the images on the machine that builds them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Bases(Protocol):
    """Root file systems that recipes share, kept as tars from one build to the next."""

    def base(self, key: str) -> Path:
        """Path of the base with this key, whether or not it exists.

        Another builder may replace the file at any time.
        """
        ...

    def builder(self, reference: str) -> AbstractContextManager[None]:
        """Let one builder of a thing work at a time; others wait."""
        ...

    def keep_base(self, key: str, made: Path) -> None:
        """Move a finished tar in and replace an older one."""
        ...
