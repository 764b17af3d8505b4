"""Show untrusted text on one line, or on several without control of the terminal."""

from __future__ import annotations


def plain(text: str, most: int = 80) -> str:
    """Escape control and direction marks of a text, and cut it to one line of at most `most` characters."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def harmless(text: str) -> str:
    """Escape everything in a text of any length that controls a terminal; line ends stay, a tab becomes a blank."""
    if text.isprintable():
        return text
    return "".join(
        each if each == "\n" or each.isprintable() else each.encode("unicode_escape").decode()
        for each in text.replace("\t", " ")
    )
