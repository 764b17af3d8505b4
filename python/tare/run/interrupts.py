"""Ctrl-C and SIGTERM interrupt only where nothing is left half done.

Everything is protected but the stretches that say otherwise (`allowed`): a signal that comes during a
teardown or a commit waits until the next such stretch begins, and a second one adds nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """The user, or whoever stops services here, wants tare to end. No `TareError`: nothing went wrong."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Interrupts:
    """Signals of this process. Without `installed` they do what they always do."""

    def __init__(self) -> None:
        self._open = False
        self._pending: int | None = None

    @contextmanager
    def installed(self, also: Iterable[signal.Signals] = ()) -> Iterator[None]:
        """Take over the signals and those of `also` while this lasts; an ignored one (nohup) stays ignored."""
        before = {number: signal.getsignal(number) for number in (*SIGNALS, *also)}
        taken = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
        for number in taken:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number, old in taken.items():
                signal.signal(number, old)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A stretch that may be broken off at any point; one that is due breaks it off before it begins."""
        self._open = True
        try:
            self._break_off_if_due()
            yield
        finally:
            self._open = False

    def forget(self) -> None:
        """The signal that broke something off is dealt with: what follows may be broken off again."""
        self._pending = None

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        if self._pending not in SIGNALS:  # one that ends the process outranks one that ends a block
            self._pending = number
        if self._open:
            self._break_off_if_due()

    def _break_off_if_due(self) -> None:
        if self._pending is not None:
            self._open = False  # what follows is teardown: a second signal must not break into it
            raise Interrupted(self._pending)
