"""Names of levels for the texts that stand for them in names of files and in tables."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def level_name(text: str) -> str:
    """Level's name for a text: itself if it can be one, else its letters without accents, hyphens for the rest."""
    if _PLAIN.fullmatch(text):
        return text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._]+", "-", plain).strip("-._")[:62].rstrip("-._")
    lost = sum(each.isalnum() for each in text) > 2 * sum(each.isalnum() for each in plain)
    return name if name and not lost else f"text-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
