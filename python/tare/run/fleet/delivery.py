"""Tare's side of a delivery: fetch files from a worker's outbox in pieces, and resume after a lost connection."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tare.errors import EnvironmentLacks
from tare.run.fleet.outbox import PIECE_BYTES, Listing, inside

if TYPE_CHECKING:
    from distributed import Client

Ask = Callable[..., Any]
"""Calls the worker: name of the call and its arguments → answer. Raises `OSError` if the worker is unreachable."""
_TIMES = 5
"""Consecutive failed calls after which a worker counts as lost."""
_PAUSE_S = 1.0
_DIRECT_S = 5.0
_ANSWER_S = 120.0


@dataclass
class WorkerLink:
    """Connection to a worker: direct, or through the scheduler if this machine cannot reach the worker."""

    client: Client
    worker: str
    direct: bool | None = None
    """`None` until it was tried."""

    def ask(self, call: str, **given: Any) -> Any:
        """Call the worker and return its answer. Raises `OSError`."""
        if self.direct is None:
            self.direct = self._reached()
        return self.client.sync(self._ask, call, direct=self.direct, timeout_s=_ANSWER_S, **given)

    def _reached(self) -> bool:
        try:
            self.client.sync(self._ask, "identity", direct=True, timeout_s=_DIRECT_S)
        except OSError:
            return False
        return True

    async def _ask(self, call: str, *, direct: bool, timeout_s: float, **given: Any) -> Any:
        async def asked() -> Any:
            if direct:
                return await getattr(self.client.rpc(self.worker), call)(**given)
            return await cast("Any", self.client.scheduler).proxy(msg={"op": call, **given}, worker=self.worker)

        return await asyncio.wait_for(asked(), timeout_s)  # its TimeoutError is an OSError


@dataclass
class Delivery:
    """Fetches the files of one task into `spool`, tare's own directory for it."""

    task: str
    spool: Path
    ask: Ask
    pause_s: float = _PAUSE_S
    _fetched: dict[str, Path] = field(default_factory=dict)

    def fetch(self) -> None:
        """Fetch what was handed over; the file of records comes last, after the files that it names.

        Raises `EnvironmentLacks` if the worker is unreachable for good or a file differs from its digest.
        """
        listing = cast("Listing", self._ask_with_retries("tare_handed_over", task=self.task))
        for each in listing:
            records, *raw = each["files"]
            for file in (*raw, records):
                self._file(str(file["name"]), int(file["bytes"]), str(file["sha256"]))
            self._ask_with_retries("tare_fetched", task=self.task, kept=each["kept"])

    def _file(self, name: str, size: int, sha256: str) -> None:
        target = inside(self.spool, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (same := self._fetched.get(sha256)) is not None:
            with suppress(FileNotFoundError):  # it is in the store by now
                shutil.copyfile(same, target)
                return
        part = self.spool / f"{sha256}.part"
        digest = hashlib.sha256()
        with part.open("a+b") as file:
            file.seek(0)
            while read := file.read(PIECE_BYTES):
                digest.update(read)
            while (offset := file.tell()) < size:
                piece = cast(
                    "bytes", self._ask_with_retries("tare_piece", task=self.task, name=name, offset=offset)
                )
                if not piece:
                    break
                file.write(piece)
                digest.update(piece)
        if digest.hexdigest() != sha256:
            part.unlink()
            raise EnvironmentLacks(f"{name} was changed in transit: its sha256 differs")
        part.rename(target)
        self._fetched[sha256] = target

    def _ask_with_retries(self, call: str, **given: Any) -> Any:
        for time_ in range(1, _TIMES + 1):
            try:
                return self.ask(call, **given)
            except OSError as error:
                if time_ == _TIMES:
                    raise EnvironmentLacks(f"its worker cannot be reached: {error}") from error
                time.sleep(self.pause_s * time_)
        raise AssertionError  # the loop returns or raises
