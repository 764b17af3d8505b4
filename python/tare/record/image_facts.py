"""The image of one side of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The bits that one side of a run was made from."""

    reference: str | None = None
    """The image as the study names it."""
    digest: str | None = None
    """sha256 over configuration and tree of the root file system."""
    engine_id: str | None = None
    """ID of the image in the engine; `null` if it is in none."""
    packages: tuple[tuple[str, str], ...] = ()
    """Name and version of the packages that the root file system was made from, if the source knows them."""
    labels: tuple[tuple[str, str], ...] = ()
    """Name and value of the image's labels."""
