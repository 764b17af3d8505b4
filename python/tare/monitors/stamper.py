"""Run a program and put a time before each line of its output: `NS<tab>line`.

    python3 -I -S stamper.py READY PROGRAM ARGUMENT …

NS: nanoseconds of CLOCK_MONOTONIC at which the line came. The file READY is made once the program runs. Signals are
meant for the program, which gets them as a member of the same process group.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    """Run the program and return its exit code; its standard error is this process's."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # a handler instead of SIG_IGN, which the program would inherit
    with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE) as program:
        Path(sys.argv[1]).touch()
        for line in iter(program.stdout.readline, b"") if program.stdout else ():
            sys.stdout.buffer.write(b"%d\t%s" % (time.monotonic_ns(), line))
            sys.stdout.buffer.flush()
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
