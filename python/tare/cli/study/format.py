"""Output formats of `tare run` and `tare sweep`."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """Format of the final output."""

    TEXT = "text"
    JSON = "json"
