"""Show untrusted text on one line."""

from __future__ import annotations


def plain(text: str, most: int = 80) -> str:
    """Escape control and direction marks of a text, and cut it to one line of at most `most` characters."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
