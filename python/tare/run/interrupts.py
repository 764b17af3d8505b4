"""Ctrl-C and SIGTERM interrupt only where nothing is left half done.

Everything is protected except sections that allow interruption (`allowed`): a signal during a teardown or a
commit waits until the next such section begins, and a second signal adds nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from tare.interruptible import put_off

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNALLED = 128


class Interrupted(KeyboardInterrupt):
    """The user or the service manager wants tare to end. Not a `TareError`: nothing went wrong."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """Exit code of a command that the signal ended, as in shells: 128 and the signal's number."""
        return _SIGNALLED + self.number


class Interrupts:
    """Signals of this process. Outside of `installed`, they have their usual effect."""

    def __init__(self) -> None:
        self._open = False
        self._pending: int | None = None

    @contextmanager
    def installed(self, also: Iterable[signal.Signals] = ()) -> Iterator[None]:
        """Take over the signals and those of `also` while the `with` statement lasts; ignored ones stay ignored.

        A signal is ignored under nohup(1), for example.
        """
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
        """A section that may be interrupted at any point; a pending signal interrupts it before it begins."""
        self._open = True
        try:
            self._raise_if_pending()
            yield
        finally:
            self._open = False

    def forget(self) -> None:
        """Discard the signal that interrupted a section: later sections can be interrupted again."""
        self._pending = None

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        if self._pending not in SIGNALS:  # a signal that ends the process outranks one that ends a block
            self._pending = number
        if not put_off(self._raise_if_open):
            self._raise_if_open()

    def _raise_if_open(self) -> None:
        if self._open:
            self._raise_if_pending()

    def _raise_if_pending(self) -> None:
        if self._pending is not None:
            self._open = False  # what follows is teardown: a second signal must not break into it
            raise Interrupted(self._pending)
