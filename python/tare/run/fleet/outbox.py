"""The worker's side of a delivery: keeps what a block on another machine handed over until tare has fetched it.

Tare fetches it in pieces, by calls that the Dask worker answers in its own event loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tare.errors import EnvironmentLacks
from tare.run.fleet.handover import KEPT, handed_over, staged_name
from tare.run.interrupts import Interrupts

PIECE_BYTES = 1 << 20
"""The most that one call carries, which bounds the memory of a scheduler that passes it on."""
PATIENCE_S = 300.0
"""How long a finished block waits for tare to fetch anything."""
_LOOK_S = 1.0
"""Seconds between checks of the time while nothing is fetched."""

Listing = list[dict[str, Any]]
"""Hand-overs in order: `kept`, the file of records, and `files` with `name`, `bytes`, `sha256`."""


class Outbox:
    """Files to fetch, in a directory below `root` for each task. Its calls are thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._digests: dict[tuple[str, int], str] = {}
        self._asked_at = time.monotonic()
        self._removed = threading.Event()
        """Set when a hand-over was fetched completely and removed."""

    def clear(self) -> None:
        """Remove what an earlier process left."""
        shutil.rmtree(self._root, ignore_errors=True)

    @contextmanager
    def of(self, task: str, interrupts: Interrupts) -> Iterator[Path]:
        """Make a directory for what a task hands over; at the end, wait until tare has fetched it.

        Raises `EnvironmentLacks` if nothing was fetched for `PATIENCE_S`.
        """
        place = self._root / task
        place.mkdir(parents=True)
        try:
            try:
                yield place
            finally:
                with interrupts.allowed():
                    self._until_fetched(place)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _until_fetched(self, place: Path) -> None:
        self._asked_at = time.monotonic()
        while any(place.glob(KEPT)):
            if time.monotonic() - self._asked_at > PATIENCE_S:
                raise EnvironmentLacks(f"tare has fetched no results for {PATIENCE_S:g} s")
            self._removed.wait(_LOOK_S)
            self._removed.clear()

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Calls that the worker answers, by name."""
        return {"tare_handed_over": self.handed_over, "tare_piece": self.piece, "tare_fetched": self.fetched}

    async def handed_over(self, task: str) -> Listing:
        """Return all complete hand-overs of a task that were not fetched yet."""
        return await asyncio.to_thread(self._listing, self._place(task))

    async def piece(self, task: str, name: str, offset: int) -> bytes:
        """Return up to `PIECE_BYTES` of a file from `offset` on; nothing at its end."""
        self._asked_at = time.monotonic()
        return await asyncio.to_thread(_read, inside(self._place(task), name), offset)

    async def fetched(self, task: str, kept: str) -> None:
        """Remove a hand-over that tare has fetched completely."""
        self._asked_at = time.monotonic()
        place = self._place(task)
        path = inside(place, kept)
        for found, records in handed_over(place):
            if found == path:
                for record in records:
                    shutil.rmtree(place / staged_name(record), ignore_errors=True)
        path.unlink(missing_ok=True)
        self._removed.set()

    def _place(self, task: str) -> Path:
        return inside(self._root, task)

    def _listing(self, place: Path) -> Listing:
        return [
            {
                "kept": path.name,
                "files": [
                    self._described(place, file)
                    for file in (path, *_raw_files(place, [staged_name(one) for one in records]))
                ],
            }
            for path, records in handed_over(place)
        ]

    def _described(self, place: Path, file: Path) -> dict[str, Any]:
        size = file.stat().st_size
        key = (str(file), size)
        if key not in self._digests:
            with file.open("rb") as content:
                self._digests[key] = hashlib.file_digest(content, "sha256").hexdigest()
        return {"name": str(file.relative_to(place)), "bytes": size, "sha256": self._digests[key]}


def inside(root: Path, name: str) -> Path:
    """Return the path below `root`. Raises `ValueError` for a path outside of it."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()) or path == root.resolve():
        raise ValueError(f"{name!r} is no path below {root}")
    return path


def _raw_files(place: Path, attempts: list[str]) -> Iterator[Path]:
    for attempt in attempts:
        yield from sorted(path for path in (place / attempt).rglob("*") if path.is_file())


def _read(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(PIECE_BYTES)
