"""Run a program and put the moment at which each line of its output came before the line: `NS<tab>line`.

    python3 -I -S stamper.py READY PROGRAM ARGUMENT …

Nanoseconds of CLOCK_MONOTONIC. The file READY is made once the program runs. Signals are meant for the program,
which gets them as a member of the same group.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    """The program's own exit code; its standard error goes where ours goes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # a handler and no SIG_IGN, which the program would inherit
    with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE) as program:
        Path(sys.argv[1]).touch()
        for line in iter(program.stdout.readline, b"") if program.stdout else ():
            sys.stdout.buffer.write(b"%d\t%s" % (time.monotonic_ns(), line))
            sys.stdout.buffer.flush()
    return program.returncode


if __name__ == "__main__":
    sys.exit(main())
