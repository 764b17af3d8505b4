"""Files that are read again and again, fetched in one round trip: what was read the last time is read ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from tare.sites import Completed, Host, Output, Process


@runtime_checkable
class ReadsAhead(Protocol):
    """A host from which many small files come at once."""

    def read_all(self, paths: Sequence[str]) -> Mapping[str, bytes | None]:
        """As `Host.read` gives each; what is not among them must be read alone: it is long, or cannot be read."""
        ...


@dataclass
class ReadAhead:
    """Knows which files of a host were read at earlier looks, and fetches these when the next one begins."""

    host: Host
    known: set[str] = field(default_factory=set)

    def look(self) -> Host:
        """The host as it is from now on: to be used at once, and once."""
        if not isinstance(self.host, ReadsAhead):
            return self.host
        contents = self.host.read_all(sorted(self.known)) if self.known else {}
        return _Look(self.host, contents, self.known)


def fetched(host: Host, paths: Iterable[str]) -> Host:
    """The host with these files read at once: to be used at once, and once."""
    if not isinstance(host, ReadsAhead):
        return host
    return _Look(host, host.read_all(sorted(set(paths))), set())


class _Look:
    """Reads from what was fetched; all else is the host's."""

    def __init__(self, host: Host, contents: Mapping[str, bytes | None], known: set[str]) -> None:
        self.name = host.name
        self._host = host
        self._fetched = dict(contents)
        self._known = known

    def read(self, path: str) -> bytes | None:
        """As fetched, where it was."""
        self._known.add(path)
        return self._fetched[path] if path in self._fetched else self._host.read(path)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """The host's."""
        return self._host.run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        """The host's."""
        return self._host.start(argv, output=output, env=env, announce=announce)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """The host's; what was fetched of that file holds no more."""
        self._host.put(source, target, mode=mode)
        self._fetched.pop(target, None)

    def get(self, source: str, target: Path) -> None:
        """The host's."""
        self._host.get(source, target)
