"""Ctrl-C while nothing has been made yet: it ends the process as it does any other program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """SIGINT ends the process at once and without a traceback, where Python would raise `KeyboardInterrupt`.

    For imports: libraries turn that exception into errors of their own. A caller's own handler stays, and so does
    a SIGINT that is ignored, as in a shell's background.
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
