"""A process that has imported what the site processes need, and forks them.

Starting Python with Dask takes most of a second of CPU time and 80 MB; a fork takes milliseconds and shares memory
that it does not change. The fork server has one thread and only forks and reaps.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, Any

from tare.errors import EnvironmentLacks

_ANSWER_S = 120.0
"""Time limit for its imports, on a busy machine."""
_END_S = 10.0
_LONGEST = 4096
_TAIL_BYTES = 2000
UNKNOWN = -1
"""Exit code of a process whose fork server has disappeared."""


class Forked:
    """A site process, with an interface like `Popen`. Its orders are written to `stdin`."""

    def __init__(self, pid: int, stdin: IO[bytes], reap: Callable[[int], int]) -> None:
        self.pid, self.stdin = pid, stdin
        self._reap = reap
        self._descriptor = os.pidfd_open(pid)
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, `None` while the process runs."""
        return self._code if self._code is not None else self._waited(0.0)

    def wait(self, timeout: float) -> int:
        """Wait and return the exit code. Raises `subprocess.TimeoutExpired`."""
        code = self._code if self._code is not None else self._waited(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)

    def _waited(self, seconds: float) -> int | None:
        """Wait on the process descriptor, which is readable once the process has ended (pidfd_open(2))."""
        ended = select.poll()  # select(2) takes no descriptor above 1023
        ended.register(self._descriptor, select.POLLIN)
        if not ended.poll(1000 * seconds):
            return None
        self._code = self._reap(self.pid)
        os.close(self._descriptor)
        with suppress(BrokenPipeError):
            self.stdin.close()
        return self._code

    def _signal(self, number: int) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)


class ForkServer:
    """Starts and talks to the forking process.

    `command`: a program whose `main` calls `tend` if its standard input is a socket.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._stderr = TemporaryFile()  # noqa: SIM115 - closed with the process
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(_ANSWER_S)
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether the fork server can fork."""
        return self._process.poll() is None

    def start(self, stderr: IO[bytes]) -> Forked:
        """Fork a process whose standard error is `stderr`. Raises `EnvironmentLacks`."""
        reading, writing = os.pipe()
        try:
            pid = int(self._ask({"fork": True}, [reading, stderr.fileno()])["pid"])
        except (OSError, ValueError, KeyError) as error:
            os.close(writing)
            what = f"no process can be started for a site: {last_line(self._stderr) or error}"
            raise EnvironmentLacks(what, hint="check the limits on memory and processes (ulimit -u)") from error
        finally:
            os.close(reading)
        return Forked(pid, os.fdopen(writing, "wb"), self._reap)

    def close(self) -> None:
        """End the fork server; forked processes continue."""
        self._channel.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def _reap(self, pid: int) -> int:
        try:
            return int(self._ask({"reap": pid})["code"])
        except (OSError, ValueError, KeyError):
            return UNKNOWN

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Mapping[str, Any]:
        with self._lock:
            try:
                socket.send_fds(self._channel, [json.dumps(request).encode()], descriptors)
                answer: Mapping[str, Any] = json.loads(self._channel.recv(_LONGEST))
            except (OSError, ValueError):
                self._process.kill()  # a late answer would be taken for the next request's
                raise
        return answer


def is_fork_server() -> bool:
    """Whether this process was started by `ForkServer`."""
    return stat.S_ISSOCK(os.fstat(0).st_mode)


def tend(prepare: Callable[[], None]) -> bool:
    """Fork on request until the requester disappears. Returns True in each forked process, False at the end."""
    prepare()
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so copy it
    with socket.socket(fileno=os.dup(0)) as channel:
        while True:
            request, descriptors, _, _ = socket.recv_fds(channel, _LONGEST, 2)
            if not request:
                return False
            asked = json.loads(request)
            if "reap" in asked:
                channel.send(json.dumps({"code": _code_of(asked["reap"])}).encode())
                continue
            try:
                pid = os.fork()
            except OSError as error:
                os.write(2, f"fork: {error.strerror}\n".encode())
                channel.send(b"{}")
                pid = None
            if pid == 0:
                os.setsid()
                for descriptor, place in zip(descriptors, (0, 2), strict=True):
                    os.dup2(descriptor, place)
            for descriptor in descriptors:
                os.close(descriptor)
            if pid == 0:
                return True
            if pid is not None:
                channel.send(json.dumps({"pid": pid}).encode())


def _code_of(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return UNKNOWN


def last_line(stderr: IO[bytes]) -> str:
    """Return the last line that a process wrote, empty if it wrote nothing."""
    size = stderr.seek(0, 2)
    stderr.seek(max(0, size - _TAIL_BYTES))
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
