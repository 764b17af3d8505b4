"""What `tare run` and `tare sweep` print at the end."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """What stdout gets."""

    TEXT = "text"
    JSON = "json"
