"""Several small files of a host written in one round trip, where it can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tare.sites import Host


@dataclass(frozen=True)
class NewFile:
    """What `Host.put` is given. `path`: absolute, on the host."""

    path: str
    content: bytes
    mode: int = 0o644


@runtime_checkable
class PutsTogether(Protocol):
    """A host on which many small files are written at once."""

    def put_all(self, files: Sequence[NewFile]) -> None:
        """As `Host.put` does each; what fails keeps no other from being written. Raises the first failure."""
        ...


def put_all(host: Host, files: Sequence[NewFile]) -> None:
    """Write them all; they must not depend on each other, as they are written in any order."""
    if isinstance(host, PutsTogether):
        host.put_all(files)
        return
    for file in files:
        host.put(file.content, file.path, mode=file.mode)
