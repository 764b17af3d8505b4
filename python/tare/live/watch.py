"""Looks for all viewers at once, and only while there are any: a page that nobody watches costs nothing."""

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
"""Between two looks. A viewer sees a change after that at the latest."""
QUIET_S = 15.0
"""After so long without anything to tell, a line that only keeps the connection open."""


@dataclass
class Watch:
    """The newest parts. `stopping`: asked whether the server is about to end."""

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
        """All parts as they are now; what was read for other viewers a moment ago is taken for new."""
        if not self._parts or self._looker is None:
            await self._look()
        return self._parts

    async def changes(self, seen: Mapping[str, str]) -> AsyncGenerator[Sequence[Part], None]:
        """Parts whose tags differ from those seen, as they come; empty when nothing came for a while.

        Ends when the server does. The tags are kept here; what a slow viewer misses in between, it need not see.
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
        """Until there is something newer, or the server ends, or a while has passed."""
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
        """In a thread, so that a slow disk or a large study keeps no other answer waiting."""
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
    """An event's id: the tag of every part that the viewer has by then, in the order of `NAMES`."""
    return ".".join(tags.get(name, "-") for name in NAMES)


def tags_of(ident_seen: str | None) -> Mapping[str, str]:
    """What a viewer has who comes back with that id; nothing of it is trusted but to be compared."""
    idents = (ident_seen or "").split(".")
    return dict(zip(NAMES, idents, strict=True)) if len(idents) == len(NAMES) else {}
