"""Fetch files that are read repeatedly in one round trip: the files of the last look are read ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.sites import Completed, Host, Output, Process


@dataclass
class ReadAhead:
    """Remembers which files of a host earlier looks have read, and fetches them at the start of the next look."""

    host: Host
    known: set[str] = field(default_factory=set)

    def look(self) -> Host:
        """The host with its current files: to be used at once, for one look."""
        contents = self.host.read_all(sorted(self.known))
        return self.host if contents is None else _Look(self.host, contents, self.known)


def fetched(host: Host, paths: Iterable[str]) -> Host:
    """The host with these files fetched at once: to be used immediately, for one look."""
    contents = host.read_all(sorted(set(paths)))
    return host if contents is None else _Look(host, contents, set())


class _Look(Host):
    """Reads files from what was fetched; everything else goes to the host."""

    def __init__(self, host: Host, contents: Mapping[str, bytes | None], known: set[str]) -> None:
        self.name = host.name
        self._host = host
        self._fetched = dict(contents)
        self._known = known

    def read(self, path: str) -> bytes | None:
        """Read a file, from what was fetched if possible."""
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
        """Call the host."""
        return self._host.run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        """Call the host."""
        return self._host.links(places)

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        """Call the host."""
        return self._host.start(argv, output=output, env=env, announce=announce)

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Call the host, and drop what was fetched of this file."""
        self._host.put(source, target, mode=mode)
        self._fetched.pop(target, None)

    def get(self, source: str, target: Path) -> None:
        """Call the host."""
        self._host.get(source, target)
