"""Programs in Python that start by fork from a process which has already imported what they need.

`run` and `Popen` are those of `subprocess` for `python -m MODULE …`, `python -c CODE …` and `python FILE …`. The
program is a child of the test's own process, with its own arguments, environment, directory and streams, and can be
signalled, killed and waited for as any other. A start of `tare run` costs two to three seconds of CPU time, nearly
all of it imports; a fork costs milliseconds. What a fork cannot give (options of Python itself, another
interpreter, variables that Python reads when it starts) is started as usual.

Not for tests of what happens while a program starts, of what it imports, or of its command line in /proc.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
PRELOADED = (
    "tare.cli.study.result", "tare.report.terminal", "tare.report.findings_file", "tare.report.in_full",
    "tare.run.fleet.coordinator", "tare.run.fleet.workers", "tare.run.fleet.dispatcher", "tare.study.registry",
    "tare.store", "tare.deployments.registry", "tare.databases.registry", "tare.monitors.registry",
    "tare.workloads.registry", "tare.run.fleet.site_process", "tests.unit.run.conftest", "distributed",
)  # fmt: skip
"""Besides the modules of all commands: what these import once they need it."""
LONGEST = 1 << 20
_ANSWER_S = 120.0
"""To import everything, on a machine that has much else to do."""
_NAMED_S = 60.0
"""For new threads to give themselves their names."""
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "SSL_")
"""Variables that a process reads when it starts; with others than here there is no fork."""
_APPLIED = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
_WHILE_IMPORTING = {"OPENBLAS_NUM_THREADS": "1"}
"""Threads do not live on in a fork."""
_MAY_RUN = {"jemalloc_bg_thd", "polars-ooc-clea"}
"""Threads of polars that a fork does without: its allocator's, which is made for forks, and one that removes files
of data that found no room in memory."""
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: orphans become children of this process."""


class _ByFork:
    """How a program is started."""

    pid: int

    def _execute_child(self, *given: Any) -> None:
        """Of `subprocess.Popen`: everything has been checked, pipes are there, `pid` is not."""
        (args, executable, preexec, _, passed, cwd, env, _, _, shell, p2cread, p2cwrite, c2pread, c2pwrite) = given[
            :14
        ]
        (errread, errwrite, _, gid, gids, uid, umask, new_session, group) = given[14:]
        words = [os.fsdecode(word) for word in args] if isinstance(args, (list, tuple)) else []
        asked = (executable, preexec, shell, gid, gids, uid) != (None, None, False, None, None, None)
        environ = dict(os.environ if env is None else env)
        if asked or passed or umask != -1 or group != -1 or not _can_be_forked(words, environ):
            super()._execute_child(*given)  # type: ignore[misc]  # no part of what typeshed knows
            return
        request = {
            "words": words[1:],
            "cwd": os.fspath(cwd) if cwd is not None else str(Path.cwd()),
            "environ": environ,
            "new_session": bool(new_session),
            "niceness": os.getpriority(os.PRIO_PROCESS, 0),
            "ignored": [int(each) for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN],
        }
        streams = [theirs if theirs != -1 else own for own, theirs in enumerate((p2cread, c2pwrite, errwrite))]
        self.pid = _source().start(request, streams)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]  # as above


class Popen(_ByFork, subprocess.Popen[bytes]):
    """As `subprocess.Popen`."""


class TextPopen(_ByFork, subprocess.Popen[str]):
    """With `text=True`."""


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] | None = None,
) -> subprocess.CompletedProcess[str]:
    """To its end, with all that it wrote."""
    with TextPopen(
        argv, cwd=cwd, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def _can_be_forked(words: Sequence[str], environ: Mapping[str, str]) -> bool:
    if len(words) < 2 or words[0] != sys.executable or (words[1][0] == "-" and words[1] not in ("-m", "-c")):
        return False
    names = {name for name in (*environ, *os.environ) if name.startswith(_READ_AT_START) and name not in _APPLIED}
    return all(environ.get(name) == os.environ.get(name) for name in names)


class Source:
    """The process that forks, and the way to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self._door.setsockopt(socket.SOL_SOCKET, option, LONGEST)
        self._door.settimeout(_ANSWER_S)
        environ = {name: value for name, value in os.environ.items() if name not in _APPLIED} | _WHILE_IMPORTING
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, *_WHILE_IMPORTING], stdin=theirs.fileno(), env=environ
            )

    def start(self, request: Mapping[str, Any], streams: Sequence[int]) -> int:
        """Its process id: a child of this process, as the one between has ended."""
        with self._lock:
            _prctl(_SUBREAPER, 1)
            try:
                socket.send_fds(self._door, [json.dumps(request).encode()], streams)
                return int(json.loads(self._door.recv(LONGEST))["pid"])
            finally:
                _prctl(_SUBREAPER, 0)

    @property
    def pid(self) -> int:
        """Of the process that forks."""
        return self._process.pid

    def close(self) -> None:
        """End it; what it has forked goes on."""
        self._door.close()
        self._process.wait(_ANSWER_S)


_started: dict[int, Source] = {}


def _source() -> Source:
    """Of this process: one that was forked has another one's."""
    if os.getpid() not in _started:
        _started[os.getpid()] = Source()
    return _started[os.getpid()]


def source_pid() -> int | None:
    """The process that forks for this one, if it was started."""
    source = _started.get(os.getpid())
    return source.pid if source is not None else None


def close() -> None:
    """When all tests have run."""
    source = _started.pop(os.getpid(), None)
    if source is not None:
        source.close()


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def preload() -> None:
    """Import what programs need, in a process that has but one thread."""
    from tare.cli.commands import COMMANDS

    for name in (*(each.module for each in COMMANDS.values()), *PRELOADED):
        importlib.import_module(name)
    deadline = time.monotonic() + _NAMED_S
    while (others := _other_threads()) - _MAY_RUN:
        assert time.monotonic() < deadline, f"something that was imported has started threads: {others}"
        time.sleep(0.01)


def _other_threads() -> set[str]:
    """Their names. One that has just started has the program's name, until it gives itself its own."""
    names = set[str]()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            names |= set() if int(task.name) == os.getpid() else {(task / "comm").read_text().strip()}
    return names


def serve(door: socket.socket) -> Mapping[str, Any] | None:
    """Fork whenever asked. Returns in each fork what it is to run, `None` once nobody asks any more."""
    while True:
        request, streams, _, _ = socket.recv_fds(door, LONGEST, 3)
        if not request:
            return None
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid:
                os.write(writing, str(pid).encode())
                os._exit(0)
            for each in (reading, writing, door.detach()):
                os.close(each)
            for own, theirs in enumerate(streams):
                os.dup2(theirs, own)
                os.close(theirs)
            asked: Mapping[str, Any] = json.loads(request)
            return asked
        os.close(writing)
        pid = int(os.read(reading, 32))
        os.waitpid(between, 0)
        for each in (reading, *streams):
            os.close(each)
        door.send(json.dumps({"pid": pid}).encode())


def become(asked: Mapping[str, Any], path: Sequence[str]) -> None:
    """What Python does before the program's first line. `path`: of modules, without anybody's own."""
    if asked["new_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, asked["niceness"])
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        if int(number) < signal.SIGRTMIN:
            signal.signal(number, signal.SIG_IGN if int(number) in asked["ignored"] else usual)
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    for own, mode, name in ((0, "rb", "stdin"), (1, "wb", "stdout"), (2, "wb", "stderr")):
        before = getattr(sys, name)
        plain = unbuffered and own > 0
        raw: Any = open(own, mode, buffering=0 if plain else -1, closefd=False)  # noqa: SIM115 - the process's own
        lines = own > 0 and not plain and (own == 2 or raw.isatty())
        (raw if plain else raw.raw).name = f"<{name}>"
        stream = io.TextIOWrapper(
            raw, encoding=before.encoding, errors=before.errors, line_buffering=lines, write_through=unbuffered
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    own_path = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = [*own_path, *path]


def play(words: Sequence[str]) -> None:
    """`-m MODULE …`, `-c CODE …` or `FILE …`, to the program's end."""
    if words[0] == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv[:] = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.path.insert(0, "")
        sys.argv[:] = ["-c", *words[2:]]
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), sys.modules["__main__"].__dict__)
    else:
        sys.path.insert(0, str(Path(words[0]).parent))
        sys.argv[:] = list(words)
        runpy.run_path(words[0], run_name="__main__")


def main() -> None:
    """Serve on standard input; in each fork play the program."""
    usual = sys.path[1:]
    sys.path[:0] = [str(ROOT), str(ROOT / "python")]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    for name in sys.argv[1:]:
        del os.environ[name]
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so copy it
    asked = serve(socket.socket(fileno=os.dup(0)))
    if asked is not None:
        become(asked, usual)
        play(asked["words"])


if __name__ == "__main__":
    main()
