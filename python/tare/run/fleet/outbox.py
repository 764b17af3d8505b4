"""The worker's side of a delivery: what a block on another machine has handed over, kept there until tare has it.

Tare asks for it piece by piece through calls that the Dask worker answers in its own event loop.
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
"""The most that one call carries: what a delivery takes of a scheduler's memory, where it goes through one."""
PATIENCE_S = 300.0
"""How long a finished block waits for tare to fetch anything."""
_LOOK_S = 1.0
"""Between looks at the time, where nothing is fetched."""

Listing = list[dict[str, Any]]
"""Hand-overs in their order: `kept`, the file of records, and `files` with `name`, `bytes`, `sha256`."""


class Outbox:
    """Below `root`, a directory a task. Its calls are safe in any thread."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._digests: dict[tuple[str, int], str] = {}
        self._asked_at = time.monotonic()
        self._removed = threading.Event()
        """A hand-over was fetched whole, and is gone."""

    def clear(self) -> None:
        """Remove what an earlier process left that nobody asks for any more."""
        shutil.rmtree(self._root, ignore_errors=True)

    @contextmanager
    def of(self, task: str, interrupts: Interrupts) -> Iterator[Path]:
        """A directory for what a task hands over; waits at the end until tare has fetched it.

        Raises `EnvironmentLacks` where nothing was fetched for `PATIENCE_S`.
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
                raise EnvironmentLacks(f"tare fetched nothing of what was measured for {PATIENCE_S:g} s")
            self._removed.wait(_LOOK_S)
            self._removed.clear()

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What the worker answers, by the name of the call."""
        return {"tare_handed_over": self.handed_over, "tare_piece": self.piece, "tare_fetched": self.fetched}

    async def handed_over(self, task: str) -> Listing:
        """All complete hand-overs of a task that were not fetched yet."""
        return await asyncio.to_thread(self._listing, self._place(task))

    async def piece(self, task: str, name: str, offset: int) -> bytes:
        """Up to `PIECE_BYTES` of a file from `offset` on; none at its end."""
        self._asked_at = time.monotonic()
        return await asyncio.to_thread(_read, inside(self._place(task), name), offset)

    async def fetched(self, task: str, kept: str) -> None:
        """Tare has a hand-over whole: remove it."""
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
    """The path below `root`; raises `ValueError` for one that is not."""
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
