"""The container engine of a host, at a local socket that OpenSSH's client forwards to the engine's."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time

from tare.errors import EnvironmentLacks
from tare.sites.file import SshSpec
from tare.sites.ledger import Ledger
from tare.sites.scratch import make_scratch, remove_scratch
from tare.sites.ssh.dialing import ssh_argv
from tare.sites.ssh.refusals import refusal

_UP_S = 40.0
_DOWN_S = 5.0
_LOOK_S = 0.02
_PAUSE_S = 1.0
_FORWARD = ("-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindUnlink=yes")
_UNTIL_TARE_ENDS = "exec cat"
"""A killed tare cannot end this program, but closing its standard input ends it, and with it the connection."""


class ForwardedEngine:
    """Forwards the socket until it is closed; a broken connection is made anew. `url`: for clients of the engine.

    `ledger`: of the machine that tare runs on; it lists the socket's `folder` while that exists. The user in `ssh`
    needs the right to use the engine's socket: sudo does not extend to it.
    """

    def __init__(self, spec: SshSpec, ledger: Ledger) -> None:
        self._spec = spec
        self._ledger = ledger
        self.folder = make_scratch(ledger, "engine")  # short: a socket's path has at most 107 bytes (unix(7))
        self._socket = self.folder / "engine.sock"
        self._closed = threading.Event()
        self.url = f"unix://{self._socket}"
        try:
            self._process = self._start()
            self._wait()
        except BaseException:
            remove_scratch(ledger, self.folder)
            raise
        self._keeper = threading.Thread(target=self._keep, name=f"engine of {spec.display_name}", daemon=True)
        self._keeper.start()

    def close(self) -> None:
        """End the connection and remove the socket."""
        self._closed.set()
        _end(self._process)
        self._keeper.join(timeout=_UP_S)
        remove_scratch(self._ledger, self.folder)

    def _start(self) -> subprocess.Popen[bytes]:
        forward = (*_FORWARD, "-L", f"{self._socket}:{self._spec.engine}")
        with (self.folder / "errors").open("wb") as errors:
            return subprocess.Popen(
                [*ssh_argv(self._spec), *forward, "--", self._spec.ssh, _UNTIL_TARE_ENDS],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
            )  # fmt: skip

    def _wait(self) -> None:
        deadline = time.monotonic() + _UP_S
        while not self._socket.exists():
            if (code := self._process.poll()) is not None:
                raise refusal(self._spec, code, (self.folder / "errors").read_text(errors="replace"))
            if time.monotonic() > deadline:
                _end(self._process)
                raise EnvironmentLacks(
                    f"the engine's socket on {self._spec.display_name} was not forwarded in {_UP_S:g} s"
                )
            time.sleep(_LOOK_S)

    def _keep(self) -> None:
        while not self._closed.is_set():
            self._process.wait()
            _close_input(self._process)
            if not self._closed.wait(_PAUSE_S):
                self._process = self._start()
        _end(self._process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=_DOWN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=_DOWN_S)
    finally:
        _close_input(process)


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
