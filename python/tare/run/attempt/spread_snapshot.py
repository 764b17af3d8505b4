"""Snapshots of a cluster whose nodes have hosts of their own: each host keeps its node's part.

The parts of one load belong together and must not be mixed with another load's. The first node's host decides
which load counts: its snapshot lies at the usual place and names the load; the other parts lie under that name.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tare.deployments.directories import remove_tree
from tare.errors import RunFailed
from tare.run.attempt.snapshot import Contents, Shelf, Snapshot, content_digest, description_of, listing_digest
from tare.sites import Host
from tare.sites.ledger import Kind

_LOAD_BYTES = 6


@dataclass(frozen=True)
class SpreadShelf:
    """Snapshot stores of the nodes' hosts, the first node's first; it holds part `1`."""

    shelves: tuple[Shelf, ...]

    def find(self, contents: Contents) -> Snapshot | None:
        """Return the snapshot of these contents; `None` if it has not been made or a host lacks its part."""
        first = self.shelves[0].find(contents)
        if first is None or first.load is None:
            return None
        elsewhere = {}
        for part, shelf in self._others():
            home = _home(shelf, contents, first.load)
            if shelf.host.read(f"{home}/snapshot.json") is None:
                return None
            elsewhere[part] = f"{home}/data/{part}"
        return replace(first, elsewhere=elsewhere)

    def keep(self, contents: Contents, data: Sequence[str], made_by: Mapping[str, Mapping[str, str]]) -> Snapshot:
        """Turn the data directories, one on each host with its node's part, into a snapshot.

        If another tare was faster, its snapshot is kept and these data are removed.
        """
        load = secrets.token_hex(_LOAD_BYTES)
        places = {str(number): f"{path}/{number}" for number, path in enumerate(data, 1)}
        hosts = {str(number): shelf.host for number, shelf in enumerate(self.shelves, 1)}
        parts = {part: listing_digest(hosts[part], path) for part, path in places.items()}
        facts = {
            "listing": _of_all(parts),
            "content": _of_all(_each(content_digest, hosts, places)),
            "parts": parts,
        }
        about = description_of(contents, made_by, {**facts, "load": load})
        first = self.shelves[0]
        if self.find(contents) is None:  # what stands there lacks the part of a host that was cleaned
            remove_tree(first.host, first.home(contents))
        for (_, shelf), path in zip(self._others(), data[1:], strict=True):
            shelf.put(path, about, _home(shelf, contents, load))
        first.put(data[0], about, first.home(contents))
        kept = self.find(contents)
        if kept is None or kept.load != load:
            for _, shelf in self._others():
                home = _home(shelf, contents, load)
                remove_tree(shelf.host, home)
                shelf.ledger.forget(Kind.PATH, home, host=shelf.host.name)
        if kept is None:
            raise RunFailed(f"the snapshot {first.home(contents)} could not be installed")
        return kept

    def _others(self) -> Sequence[tuple[str, Shelf]]:
        """Part and snapshot store of every node but the first."""
        return [(str(number), shelf) for number, shelf in enumerate(self.shelves[1:], 2)]


def _home(shelf: Shelf, contents: Contents, load: str) -> str:
    return f"{shelf.home(contents)}.{load}"


def _each(
    digest: Callable[[Host, str], str], hosts: Mapping[str, Host], places: Mapping[str, str]
) -> Mapping[str, str]:
    return {part: digest(hosts[part], path) for part, path in places.items()}


def _of_all(digests: Mapping[str, str]) -> str:
    """One digest over the digests of all parts."""
    lines = "".join(f"{part} {digest}\n" for part, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
