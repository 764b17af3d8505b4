"""A number with its noun: `1 block`, `8 blocks`."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`noun` in the singular; only nouns that take an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
