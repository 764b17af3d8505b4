"""Write several small files of a host, in one round trip if the host supports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tare.sites import Host


@dataclass(frozen=True)
class NewFile:
    """Arguments of `Host.put`. `path`: absolute, on the host."""

    path: str
    content: bytes
    mode: int = 0o644


@runtime_checkable
class PutsTogether(Protocol):
    """A host that can write many small files in one call."""

    def put_all(self, files: Sequence[NewFile]) -> None:
        """Write each file as `Host.put` does, even if another fails. Raises the first failure."""
        ...


def put_all(host: Host, files: Sequence[NewFile]) -> None:
    """Write all files. They must not depend on each other, as the order is not defined."""
    if isinstance(host, PutsTogether):
        host.put_all(files)
        return
    for file in files:
        host.put(file.content, file.path, mode=file.mode)
