"""Wait for a program and write its exit code to a file. Run on the host by its own Python; standard library only.

    python3 -I -S supervisor.py STATUS_FILE PROGRAM [ARGUMENT...]

The program inherits this process's outputs, and is killed if this process dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def main(status: str, *argv: str) -> int:
    """Run the command line."""
    libc = ctypes.CDLL(None)
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would inherit that
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - a shell is what must not be there
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
            os._exit(127)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    part = Path(f"{status}.part")
    part.write_text(str(code))
    part.rename(status)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
