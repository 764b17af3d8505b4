"""What a benchmark prints, kept in a file as well where one was asked for."""

from __future__ import annotations

import sys
from pathlib import Path


def show(text: str, markdown: Path | None) -> None:
    """Print `text`, which ends with a line break, and write it to `markdown`, whose directory is made."""
    sys.stdout.write(text)
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        markdown.write_text(text, encoding="utf-8")
