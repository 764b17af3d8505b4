"""A text from outside, shown on one line."""

from __future__ import annotations


def plain(text: str, most: int = 80) -> str:
    """A text on one line of at most `most` characters, control and direction marks escaped."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
