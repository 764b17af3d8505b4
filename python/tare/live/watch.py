"""One look for all viewers, and only while there are any: a page that nobody watches costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anyio import to_thread
from jinja2 import Environment

from tare.live.look import StoreReader
from tare.live.parts import NAMES, Part, environment, parts

EVERY_S = 2.0
"""Seconds between two looks. A viewer sees a change after this time at the latest."""
QUIET_S = 15.0
"""Seconds without news after which a line is sent to keep the connection open."""


@dataclass
class Watch:
    """The newest parts. `stopping`: whether the server is about to end."""

    reader: StoreReader
    stopping: Callable[[], bool] = lambda: False
    every_s: float = EVERY_S
    templates: Environment = field(default_factory=environment)
    viewers: int = 0
    turn: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _looker: asyncio.Task[None] | None = None
    _parts: Mapping[str, Part] = field(default_factory=dict)

    async def newest(self) -> Mapping[str, Part]:
        """All current parts; parts that were read for other viewers a moment ago count as current."""
        if not self._parts or self._looker is None:
            await self._look()
        return self._parts

    async def changes(self, seen: Mapping[str, str]) -> AsyncGenerator[Sequence[Part], None]:
        """Parts whose tags differ from those seen, as they change; empty if nothing has changed for a while.

        Ends with the server. The tags are kept here; a slow viewer does not get the states that it missed.
        """
        tags = dict(seen)
        async with self._watched():
            while not self.stopping():
                turn = self.turn
                new = [part for part in self._parts.values() if tags.get(part.name) != part.tag]
                tags |= {part.name: part.tag for part in new}
                yield new
                await self._wait(turn)

    @contextlib.asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        self.viewers += 1
        try:
            await self.newest()
            if self._looker is None:
                self._looker = asyncio.create_task(self._look_on())
            yield
        finally:
            self.viewers -= 1

    async def _wait(self, turn: int) -> None:
        """Wait for a newer state, for the server's end, or for `QUIET_S`."""
        waited = 0.0
        while self.turn == turn and not self.stopping() and waited < QUIET_S:
            async with self._changed:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), timeout=0.5)
            waited += 0.5

    async def _look_on(self) -> None:
        try:
            while self.viewers and not self.stopping():
                await asyncio.sleep(self.every_s)
                await self._look()
        finally:
            self._looker = None

    async def _look(self) -> None:
        """Look in a thread, so that a slow disk or a large study delays no other answer."""
        async with self._lock:
            seen = await to_thread.run_sync(lambda: parts(self.reader.look(), self.templates))
            if _tags(seen) != _tags(self._parts):
                self._parts = seen
                self.turn += 1
                async with self._changed:
                    self._changed.notify_all()


def _tags(page_parts: Mapping[str, Part]) -> dict[str, str]:
    return {name: part.tag for name, part in page_parts.items()}


def ident(tags: Mapping[str, str]) -> str:
    """ID of an event: the tags of all parts that the viewer then has, in the order of `NAMES`."""
    return ".".join(tags.get(name, "-") for name in NAMES)


def tags_of(ident_seen: str | None) -> Mapping[str, str]:
    """Tags of a viewer who returns with that ID; they are only compared, and not trusted otherwise."""
    idents = (ident_seen or "").split(".")
    return dict(zip(NAMES, idents, strict=True)) if len(idents) == len(NAMES) else {}
