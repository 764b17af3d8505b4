"""The loaded data that a run started from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final


@final
@dataclass(frozen=True, slots=True)
class MadeBy:
    """A side of the arm that loaded the data."""

    deployment: str | None = None
    """Its deployment."""
    network: str | None = None
    """Its network."""


@final
@dataclass(frozen=True, slots=True)
class LoadedData:
    """The loaded data that the run started from, as a copy."""

    key: str
    """Digest of everything that it depends on."""
    listing: str | None = None
    """Digest of the files' names, sizes, owners and modes; every copy is checked against it."""
    content: str | None = None
    """Digest of their bytes."""
    made_by: Mapping[str, MadeBy] = field(default_factory=dict)
    """`sut` and `client` when it was loaded."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Directory of a node within it ("" for a single server) → the digest of its listing."""
    load: str | None = None
    """If nodes have separate hosts: names the load that all parts come from."""
