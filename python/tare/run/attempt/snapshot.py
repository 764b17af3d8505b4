"""Snapshots of loaded data directories: made once, copied for every run, compared by a list of their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tare.deployments.directories import sync_and_evict
from tare.errors import RunFailed
from tare.record.loaded_data import LoadedData, MadeBy
from tare.sites import Host
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Ledger

FORMAT = 1
_QUICK_S = 120.0
_COPY_S = 4 * 3600.0

_LISTING = (
    "(", "-type", "f", "-printf", r"f %s %U:%G %m %P\0", ")", "-o", "-printf", r"%y - %U:%G %m %P\0",
)  # fmt: skip
"""find(1): type, size (of files), owner, mode and name of everything below a directory."""


@dataclass(frozen=True)
class Contents:
    """Everything that a loaded data directory depends on: the key of its snapshot."""

    image_digest: str
    database: str | None
    settings: Mapping[str, str | int | float | bool]
    workload: str
    dataset: Mapping[str, str | int]

    @property
    def key(self) -> str:
        """sha256 of all fields, shortened for a directory name."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Snapshot:
    """One loaded data directory at rest, or the directories of all nodes, stopped together.

    `listing`: digest of names, sizes, owners and modes of the files; `content`: digest of every file's bytes.
    `parts`: directory of a node below `data` (`data` itself: "") → digest of its listing.
    """

    key: str
    data: str
    listing: str
    content: str
    made_by: Mapping[str, Mapping[str, str]]
    parts: Mapping[str, str]
    load: str | None = None
    """Identifies one load of nodes on hosts of their own: their data were stopped together."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """For nodes on hosts of their own: part → its directory on the node's host, except the first node's."""

    def source_of(self, part: str) -> str:
        """Return the directory of a node's part on that node's host."""
        return self.elsewhere.get(part) or _within(self.data, part)

    @property
    def recorded(self) -> LoadedData:
        """What a record keeps of the snapshot; paths are left out, as they are the host's own."""
        made_by = {side: MadeBy(each.get("deployment"), each.get("network")) for side, each in self.made_by.items()}
        return LoadedData(self.key, self.listing, self.content, made_by, self.parts, self.load)


@dataclass(frozen=True)
class Shelf:
    """Store of a host's snapshots."""

    host: Host
    ledger: Ledger
    layout: Layout

    def find(self, contents: Contents) -> Snapshot | None:
        """Return the snapshot of these contents; `None` if it has not been made."""
        home = self.home(contents)
        raw = self.host.read(f"{home}/snapshot.json")
        if raw is None:
            return None
        kept = json.loads(raw)
        return Snapshot(
            key=contents.key,
            data=f"{home}/data",
            listing=kept["listing"],
            content=kept["content"],
            made_by=kept["made_by"],
            parts=kept.get("parts", {"": kept["listing"]}),
            load=kept.get("load"),
        )

    def keep(
        self, contents: Contents, data: str, made_by: Mapping[str, Mapping[str, str]], parts: Sequence[str] = ("",)
    ) -> Snapshot:
        """Turn a data directory, whose server has stopped cleanly, into a snapshot: sync, then move in whole.

        `data` must lie on the layout's file system. If another tare was faster, its snapshot is kept.
        """
        host = self.host
        facts = {
            "listing": listing_digest(host, data),
            "content": content_digest(host, data),
            "parts": {part: listing_digest(host, _within(data, part)) for part in parts},
        }
        why = self.put(data, description_of(contents, made_by, facts), self.home(contents))
        kept = self.find(contents)
        if kept is None:
            raise RunFailed(f"the snapshot {self.home(contents)} could not be installed: {why}")
        return kept

    def put(self, data: str, described: Mapping[str, Any], home: str) -> str:
        """Move a data directory to its final place with its description; return the error output of mv(1).

        A snapshot that is already there is kept.
        """
        host, scratch = self.host, f"{data}.snapshot"
        host.run(["install", "-d", "-m", "0700", "--", str(self.layout.snapshots), scratch], timeout_s=_QUICK_S)
        host.run(["mv", "-T", "--", data, f"{scratch}/data"], timeout_s=_QUICK_S)
        host.put(json.dumps(described, indent=1, sort_keys=True).encode(), f"{scratch}/snapshot.json")
        host.run(["sync", "-f", "--", scratch], timeout_s=_COPY_S)
        self.ledger.note(Kind.PATH, home, host=host.name, keep=True)
        moved = host.run(["mv", "-T", "--", scratch, home], timeout_s=_QUICK_S, check=False)
        host.run(["sync", "-f", "--", str(self.layout.snapshots)], timeout_s=_COPY_S)
        return moved.stderr.decode(errors="replace").strip()

    def home(self, contents: Contents) -> str:
        """Return the directory of the snapshot of these contents."""
        return f"{self.layout.snapshots}/{contents.key}"


def description_of(
    contents: Contents, made_by: Mapping[str, Mapping[str, str]], facts: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the description that is stored with a snapshot."""
    return {"format": FORMAT, **asdict(contents), "made_by": dict(made_by), **facts}


def copy_snapshot(host: Host, snapshot: Snapshot, target: str, part: str = "", *, warmed: bool = False) -> None:
    """Copy a node's part to `target` and bring the page cache into the same state, so that all runs start alike."""
    source = snapshot.source_of(part)
    host.run(["cp", "-a", "--reflink=auto", "-T", "--", source, target], timeout_s=_COPY_S)
    sync_and_evict(host, target, warmed=warmed)
    if listing_digest(host, target) != snapshot.parts[part]:
        raise RunFailed(f"{target} is not an identical copy of the snapshot {snapshot.key}")


def size_of(host: Host, snapshot: Snapshot, part: str = "") -> int:
    """Return the bytes that a copy of a node's part takes on disk."""
    printed = host.run(["du", "-s", "-B1", "--", snapshot.source_of(part)], timeout_s=_QUICK_S).text
    return int(printed.split()[0])


def _within(directory: str, part: str) -> str:
    return f"{directory}/{part}" if part else directory


def listing_digest(host: Host, directory: str) -> str:
    """sha256 over names, types, sizes, owners and modes: cheap, whatever the size of the data."""
    printed = host.run(["find", directory, *_LISTING], timeout_s=_QUICK_S).stdout
    return hashlib.sha256(b"\0".join(sorted(printed.split(b"\0")))).hexdigest()


def content_digest(host: Host, directory: str) -> str:
    """sha256 over name and content of every file; reads all of the data."""
    argv = ["find", directory, "-type", "f", "-exec", "sha256sum", "-z", "--", "{}", "+"]
    printed = host.run(argv, timeout_s=_COPY_S).stdout.replace(f"{directory}/".encode(), b"")
    return hashlib.sha256(b"\0".join(sorted(printed.split(b"\0")))).hexdigest()
