"""A real terminal for commands that ask: a pseudo-terminal of a size, typed into and read from."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests import preloaded

ROOT = Path(__file__).resolve().parents[3]
CTRL_C, CTRL_D = "\x03", "\x04"
_WAIT_S = 60.0


class Terminal:
    """One `tare` in it. `said`: all that it has shown."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self._process, self._screen, self.said, self._seen = process, screen, "", 0

    def until(self, text: str) -> None:
        """Read until `text` is shown, after what was waited for before."""
        end = time.monotonic() + _WAIT_S
        while (at := self.said.find(text, self._seen)) < 0:
            assert self._read(end), f"no {text!r} in {self.said!r}"
        self._seen = at + len(text)

    def answer(self, *answers: str) -> None:
        """Each with Enter, once a question waits for it."""
        for each in answers:
            self.until(": ")
            self.press(f"{each}\n")

    def press(self, keys: str) -> None:
        """As a keyboard would."""
        os.write(self._screen, keys.encode())

    def ended(self) -> int:
        """The exit code, once the command has ended."""
        end = time.monotonic() + _WAIT_S
        while self._read(end):
            pass
        if time.monotonic() > end:
            self._process.kill()
        return self._process.wait()

    def _read(self, end: float) -> bool:
        if not select.select([self._screen], [], [], max(0.0, end - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self._screen, 65536)
        except OSError:  # how Linux tells that nobody holds the other end
            return False
        self.said += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def tare_in_terminal(*words: str, cwd: Path, environ: Mapping[str, str], columns: int = 80) -> Iterator[Terminal]:
    """`tare` with these words in a terminal of `columns` by 24."""
    screen, theirs = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": "xterm", **environ}
    argv = [sys.executable, "-m", "tare", *words]
    # In a session of its own, of which the terminal becomes the controlling one.
    with preloaded.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=environ, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(process, screen)
        finally:
            os.close(screen)  # hangs up: what is left of the command ends
