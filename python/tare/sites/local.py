"""The machine that tare itself runs on."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from tare.errors import NO_FILE, EnvironmentLacks, RunFailed, TimedOut, host_failed
from tare.interruptible import unbroken
from tare.sites import Completed, Host, Output, Process
from tare.sites.abilities import ClockReading
from tare.sites.marks import MADE_BY
from tare.sites.process import identify, to_ident
from tare.sites.reading import is_missing, last_line

_DRAIN_S = 1.0
"""How long to read the pipes of a killed program; a descendant that left its group may hold them open."""

_COPIED_BYTES = 1 << 20
_PSEUDO = ("/proc/", "/sys/")
_PYTHON = "python3"

_NO_INPUT = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
_HELD = ("/bin/sh", "-c", 'read -r word && exec "$@" </dev/null', "held")
"""Becomes the program in its arguments when it reads a line from standard input, and ends if standard input
ends."""


class LocalHost(Host):
    """Runs programs as children of this process; `env`, if given, is the whole environment.

    `python3` is the interpreter that runs tare: the one in $PATH may be a shim of a version manager, which takes
    several times as long to start. A user who may not run it (as `setpriv` leaves one) gets that of $PATH.
    """

    def __init__(self, name: str = "local") -> None:
        self.name = name
        self._unreaped: set[int] = set()
        own = os.path.realpath(sys.executable)
        self._python = own if os.access(own, os.X_OK) else _PYTHON

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        """Run to the end, in a process group of its own that is killed completely when the time is up."""
        self._reap()
        with unbroken() as lift:
            try:
                program = subprocess.Popen(  # argument list, no shell
                    self._program(argv),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=_marked(os.environ) if env is None else dict(env),
                    start_new_session=True,
                )
            except OSError as error:
                what = f"{argv[0]} cannot be run on {self.name}"
                raise host_failed(what, error.errno, error.strerror) from error
            with program:
                try:
                    lift()
                    stdout, stderr = program.communicate(stdin, timeout=timeout_s)
                except BaseException as error:
                    _kill_group(program)
                    if isinstance(error, subprocess.TimeoutExpired):
                        what = f"{_short_command(argv)} did not end within {timeout_s:g} s on {self.name}"
                        raise TimedOut(f"{what} and was killed") from error
                    raise
        done = Completed(tuple(argv), program.returncode, stdout, stderr)
        if check and done.code != 0:
            raise RunFailed(f"{_short_command(argv)} ended with {done.code} on {self.name}: {last_line(done)}")
        return done

    def start(
        self,
        argv: Sequence[str],
        *,
        output: Output,
        env: Mapping[str, str] | None = None,
        announce: Callable[[Process], None] | None = None,
    ) -> Process:
        """Start in a session of its own, with empty standard input and new output files.

        With `announce`, a shell waits for a line to become the program, with the same pid and start time; it may
        add variables that shells set (PWD) to the environment.
        """
        program = self._program(argv)
        if announce is None:
            return self._spawn(program, _NO_INPUT, output, env)
        if (program_path := shutil.which(program[0])) is None:
            raise RunFailed(f"{argv[0]} cannot be started on {self.name}: no such program may be run there")
        waits, word = os.pipe()
        try:
            process = self._spawn(
                [*_HELD, program_path, *program[1:]], (os.POSIX_SPAWN_DUP2, waits, 0), output, env
            )
            announce(process)
            os.write(word, b"go\n")
        finally:
            for end in (waits, word):
                os.close(end)
        return process

    def _spawn(
        self, program: list[str], stdin: tuple[Any, ...], output: Output, env: Mapping[str, str] | None
    ) -> Process:
        self._reap()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        try:
            pid = os.posix_spawnp(
                program[0],
                program,
                _marked(os.environ if env is None else env),
                file_actions=[
                    stdin,
                    (os.POSIX_SPAWN_OPEN, 1, output.stdout, flags, 0o644),
                    (os.POSIX_SPAWN_OPEN, 2, output.stderr, flags, 0o644),
                ],
                setsid=True,
                # A tare in the background ignores SIGINT; programs would inherit that, though SIGINT ends some of
                # them.
                setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT],
            )
        except OSError as error:
            what = f"{program[0]} cannot be started on {self.name}"
            raise host_failed(what, error.errno, error.strerror) from error
        self._unreaped.add(pid)
        process = identify(self, pid)
        if process is None:  # an unreaped child always has its /proc entry
            raise RunFailed(f"{program[0]} was started on {self.name} as {pid} but /proc does not show it")
        return process

    def put(self, source: Path | bytes, target: str, *, mode: int = 0o644) -> None:
        """Write a file completely or not at all (by a rename), except below /proc and /sys."""
        content = source if isinstance(source, bytes) else source.read_bytes()
        try:
            if target.startswith(_PSEUDO):
                _write_once(target, content, os.O_WRONLY, mode)
                return
            scratch = f"{target}.{uuid4().hex}"
            try:
                _write_once(scratch, content, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                Path(scratch).replace(target)
            except OSError:
                Path(scratch).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise RunFailed(f"{target} cannot be written on {self.name}: {error.strerror}") from error

    def get(self, source: str, target: Path) -> None:
        """Copy a file or a directory.

        Links inside it are copied as links, but `source` itself must not be a link.
        """
        try:
            kind = Path(source).lstat().st_mode
            if stat.S_ISLNK(kind):
                raise RunFailed(f"{source} cannot be copied from {self.name}: it is a link")
            if stat.S_ISDIR(kind):
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            else:
                _copy_regular(source, target)
        except (OSError, shutil.Error) as error:
            raise RunFailed(f"{source} cannot be copied from {self.name}: {error}") from error

    def read(self, path: str) -> bytes | None:
        """Read a file; `None` if it does not exist, or belongs to a process or control group that has gone."""
        try:
            return Path(path).read_bytes()
        except OSError as error:
            if is_missing(path, error.errno):
                return None
            what = f"{path} cannot be read on {self.name}"
            raise host_failed(what, error.errno, error.strerror, spent=NO_FILE) from error

    def links(self, places: Sequence[str]) -> Mapping[str, str]:
        """Read them without a program, which would have to wait for a CPU beside busy servers and clients."""
        return {str(path): target for place in places for path in _inside(place) if (target := _target(path))}

    def clocks(self) -> ClockReading:
        """Read both clocks one after the other."""
        return ClockReading(time.monotonic_ns(), time.time_ns())

    def _program(self, argv: Sequence[str]) -> list[str]:
        return [self._python, *argv[1:]] if argv[0] == _PYTHON else list(argv)

    def _reap(self) -> None:
        """Reap ended children of `start`, so that no zombie is taken for a living process."""
        for pid in tuple(self._unreaped):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
            self._unreaped.discard(pid)


def _marked(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program, with the mark by which a sweep knows it and what it starts."""
    return {**env, MADE_BY: _mark_of(os.getpid())}


@functools.lru_cache(maxsize=1)
def _mark_of(pid: int) -> str:  # noqa: ARG001 - a fork is another process
    return to_ident(own_process())


def _inside(place: str) -> list[Path]:
    """A link itself, or what is in a directory; nothing if it is missing or closed to the user."""
    path = Path(place)
    try:
        return [path] if path.is_symlink() else list(path.iterdir())
    except OSError as error:
        if is_missing(place, error.errno) or isinstance(error, PermissionError):
            return []
        raise host_failed(f"{place} cannot be read", error.errno, error.strerror, spent=NO_FILE) from error


def _target(link: Path) -> str | None:
    """Target of a link; `None` if it has gone, is closed to the user, or is no link."""
    with contextlib.suppress(OSError):
        return str(link.readlink())
    return None


def _copy_regular(source: str, target: Path) -> None:
    """Copy a regular file.

    A link or a pipe in its place is neither followed nor waited for, whenever it appears.
    """
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no regular file")
        with target.open("wb") as copy:
            shutil.copyfileobj(file, copy, _COPIED_BYTES)


def own_process() -> Process:
    """The tare process itself, as in ledgers and labels."""
    process = identify(LocalHost(), os.getpid())
    if process is None:
        raise EnvironmentLacks("tare cannot find itself in /proc", hint="mount /proc")
    return process


def _kill_group(program: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.communicate(timeout=_DRAIN_S)
    for pipe in (program.stdin, program.stdout, program.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _write_once(path: str, content: bytes, flags: int, mode: int) -> None:
    descriptor = os.open(path, flags, mode)
    try:
        if flags & os.O_CREAT:
            os.fchmod(descriptor, mode)  # independent of the umask
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _short_command(argv: Sequence[str]) -> str:
    """The program and its first argument: enough to identify it, too little to reveal a password."""
    return " ".join([Path(argv[0]).name, *argv[1:2]])
