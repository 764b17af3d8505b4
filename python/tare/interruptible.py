"""Let Ctrl-C end the process at once, as it ends any other program, while tare has not made anything yet."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
