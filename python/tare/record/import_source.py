"""Where an imported run comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ImportSource:
    """The file of others that a run was read from."""

    file: str
    """Name of the file."""
    sha256: str
    """Digest of its bytes."""
    origin: str | None = None
    """Who measured, as the mapping says."""
    parser: str | None = None
    """Parser that read the file."""
    repetition: str | None = None
    """Which repetition it is, as the mapping says."""
    says: Mapping[str, str] = field(default_factory=dict)
    """What the file says of itself, by the parser's names."""
    distortions: tuple[str, ...] = ()
    """Known faults of the tool's figures that apply to this file."""
