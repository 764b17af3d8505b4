"""What several images start from: kept on the machine that builds them, beside the images."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Bases(Protocol):
    """Root file systems that recipes have in common, as tars kept from one build to the next."""

    def base(self, key: str) -> Path:
        """Where the base made under a key lies, or would lie. Another builder may replace it at any time."""
        ...

    def builder(self, reference: str) -> AbstractContextManager[None]:
        """One builder of a thing at a time; the others wait."""
        ...

    def keep_base(self, key: str, made: Path) -> None:
        """Move a finished tar in, in place of an older one."""
        ...
