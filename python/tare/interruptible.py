"""Where a signal ends the process at once, as any other program, and where it has to wait a moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Let SIGINT end the process at once and without a traceback, where Python would raise `KeyboardInterrupt`.

    For imports: libraries turn that exception into errors of their own. A handler of the caller stays in place, and
    an ignored SIGINT, as in a shell's background job, stays ignored.
    """
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass
class _Unbroken:
    """Sections of the main thread, which alone runs Python's handlers, and what a signal in them asked for."""

    depth: int = 0
    late: Callable[[], None] | None = None


_main = _Unbroken()


@contextmanager
def unbroken() -> Iterator[Callable[[], None]]:
    """Keep handlers that ask `put_off` from raising until the yielded function is called, or the section ends.

    For a moment in which an exception would lose what was made: a child process that has no variable yet.
    """
    own = threading.current_thread() is threading.main_thread()

    def lift() -> None:
        nonlocal own
        if not own:
            return
        own = False
        _main.depth -= 1
        if _main.depth == 0 and (late := _main.late) is not None:
            _main.late = None
            late()

    _main.depth += own
    try:
        yield lift
    finally:
        lift()


def put_off(late: Callable[[], None]) -> bool:
    """Have a handler's `late` called at the end of the main thread's section; `False` if it is in none."""
    if _main.depth == 0:
        return False
    _main.late = late
    return True
