"""The local host: time limits, process groups, files written whole."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tare.errors import HostSilent, RunFailed, TimedOut
from tare.run.interrupts import Interrupted, Interrupts
from tare.sites import Output, Process
from tare.sites.local import LocalHost
from tare.sites.process import alive, identify


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path.read_text()


def test_run_hands_back_code_and_both_outputs(host: LocalHost) -> None:
    done = host.run(["sh", "-c", "cat; echo oops >&2; exit 3"], timeout_s=60, stdin=b"hello", check=False)
    assert (done.code, done.stdout, done.stderr) == (3, b"hello", b"oops\n")


def test_run_raises_with_the_last_line_when_checked(host: LocalHost) -> None:
    with pytest.raises(RunFailed, match="ended with 4 on local: second"):
        host.run(["sh", "-c", "echo first >&2; echo second >&2; exit 4"], timeout_s=60)


def test_run_of_a_missing_program_is_one_clear_failure(host: LocalHost) -> None:
    with pytest.raises(RunFailed, match=r"no-such-program cannot be run on local: No such file"):
        host.run(["no-such-program"], timeout_s=60)


def test_run_gives_exactly_the_environment_it_was_given(host: LocalHost) -> None:
    assert host.run(["/usr/bin/env"], timeout_s=60, env={"ONLY": "this"}).text == "ONLY=this\n"


def test_timeout_kills_the_whole_process_group(host: LocalHost, tmp_path: Path) -> None:
    child = tmp_path / "child"
    with pytest.raises(TimedOut, match=r"did not end within 0\.5 s"):
        host.run(["sh", "-c", f"sleep 600 & echo $! >{child}; wait"], timeout_s=0.5)
    deadline = time.monotonic() + 60
    while identify(host, int(child.read_text())) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_timeout_holds_when_a_descendant_left_the_group_with_the_pipes(host: LocalHost, tmp_path: Path) -> None:
    child = tmp_path / "child"
    with pytest.raises(TimedOut):
        host.run(["sh", "-c", f"setsid sh -c 'echo $$ >{child}; exec sleep 600' & wait"], timeout_s=0.5)
    host.run(["kill", child.read_text().strip()], timeout_s=60)  # it outlived the call


def test_start_returns_at_once_and_writes_to_files(host: LocalHost, tmp_path: Path) -> None:
    output = Output(str(tmp_path / "out"), str(tmp_path / "err"))
    process = host.start(["sh", "-c", "echo out; echo err >&2; exec sleep 600"], output=output)
    try:
        assert alive(host, process)
        assert wait_for(tmp_path / "out") == "out\n"
        assert wait_for(tmp_path / "err") == "err\n"
        session = (host.read(f"/proc/{process.pid}/stat") or b"").split(b") ")[1].split()[3]
        assert int(session) == process.pid
    finally:
        host.run(["kill", "-9", str(process.pid)], timeout_s=60)


def test_what_a_tare_in_the_background_starts_can_still_be_interrupted(host: LocalHost, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = host.start(["sleep", "600"], output=Output(str(tmp_path / "o"), str(tmp_path / "e")))
    finally:
        signal.signal(signal.SIGINT, before)
    host.run(["kill", "-INT", str(process.pid)], timeout_s=60)
    deadline = time.monotonic() + 60
    while alive(host, process):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_is_announced_begins_only_afterwards_and_is_the_same_process(host: LocalHost, tmp_path: Path) -> None:
    processes: list[Process] = []

    def announce(process: Process) -> None:
        processes.append(process)
        time.sleep(0.2)
        assert alive(host, process)
        assert not (tmp_path / "out").read_text()

    output = Output(str(tmp_path / "out"), str(tmp_path / "err"))
    argv = [
        "python3",
        "-I",
        "-S",
        "-c",
        "import os, sys; print(os.getpid(), repr(sys.stdin.read()), *sys.argv[1:])",
    ]
    words = ["two words", "$HOME", "*", ""]
    process = host.start([*argv, *words], output=output, announce=announce)
    assert wait_for(tmp_path / "out") == f"{process.pid} '' two words $HOME * \n"
    assert processes == [process]


def test_what_cannot_be_announced_never_begins(host: LocalHost, tmp_path: Path) -> None:
    processes: list[Process] = []

    def announce(process: Process) -> None:
        processes.append(process)
        raise RunFailed("the ledger cannot be used")

    output = Output(str(tmp_path / "o"), str(tmp_path / "e"))
    with pytest.raises(RunFailed, match="the ledger cannot be used"):
        host.start(["touch", str(tmp_path / "began")], output=output, announce=announce)
    deadline = time.monotonic() + 60
    while alive(host, processes[0]):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not (tmp_path / "began").exists()


def test_what_begins_after_a_word_gets_its_environment_and_its_signals(host: LocalHost, tmp_path: Path) -> None:
    output = Output(str(tmp_path / "out"), str(tmp_path / "err"))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        script = 'import os, signal; print(os.environ["ONLY"], signal.getsignal(signal.SIGINT) is signal.SIG_IGN)'
        argv = ["python3", "-I", "-c", script]
        host.start(argv, output=output, env={"ONLY": "this"}, announce=lambda _: None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert wait_for(tmp_path / "out") == "this False\n"


def test_a_missing_program_is_one_clear_failure_and_not_announced(host: LocalHost, tmp_path: Path) -> None:
    processes: list[Process] = []
    output = Output(str(tmp_path / "o"), str(tmp_path / "e"))
    with pytest.raises(RunFailed, match="no-such-program cannot be started on local: no such program may be run"):
        host.start(["no-such-program"], output=output, announce=processes.append)
    with pytest.raises(RunFailed, match=r"no-such-program cannot be started on local: No such file"):
        host.start(["no-such-program"], output=output)
    assert processes == []


def test_started_process_that_ended_is_not_alive_and_leaves_no_zombie(host: LocalHost, tmp_path: Path) -> None:
    process = host.start(["true"], output=Output(str(tmp_path / "o"), str(tmp_path / "e")))
    deadline = time.monotonic() + 60
    while alive(host, process):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    host.run(["true"], timeout_s=60)
    assert identify(host, process.pid) is None


def test_put_replaces_whole_files_with_the_mode_asked_for(host: LocalHost, tmp_path: Path) -> None:
    target = tmp_path / "secret"
    target.write_text("old and longer")
    host.put(b"new", str(target), mode=0o600)
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_put_into_a_missing_directory_says_where(host: LocalHost, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="missing/file cannot be written on local"):
        host.put(b"", str(tmp_path / "missing" / "file"))


def test_get_copies_files_and_directories(host: LocalHost, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to("/nowhere")
    (tmp_path / "tree" / "file").write_text("x")
    host.get(str(tmp_path / "tree"), tmp_path / "copy")
    host.get(str(tmp_path / "tree" / "file"), tmp_path / "single")
    assert (tmp_path / "copy" / "link").readlink() == Path("/nowhere")
    assert (tmp_path / "copy" / "file").read_text() == (tmp_path / "single").read_text() == "x"


def test_read_tells_absent_from_empty(host: LocalHost, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert host.read(str(tmp_path / "empty")) == b""
    assert host.read(str(tmp_path / "absent")) is None
    assert host.read("/proc/self/status") is not None


def test_python3_is_the_interpreter_that_tare_runs_on(host: LocalHost, tmp_path: Path) -> None:
    """One in $PATH may be a slow shim of a version manager."""
    argv = ["python3", "-I", "-S", "-c", "import sys; print(sys.executable)"]
    mine = os.path.realpath(sys.executable)
    assert os.path.realpath(host.run(argv, timeout_s=60, env={"PATH": "/nowhere"}).text.strip()) == mine
    host.start(argv, output=Output(str(tmp_path / "out"), str(tmp_path / "err")), env={"PATH": "/nowhere"})
    assert os.path.realpath(wait_for(tmp_path / "out").strip()) == mine


def test_python3_is_that_of_the_path_where_the_own_interpreter_may_not_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by another user's tare: no server could be stopped."""
    closed = tmp_path / "python3.11"
    closed.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(closed))
    assert LocalHost().run(["python3", "-c", "print(1)"], timeout_s=60).text.strip() == "1"


@pytest.fixture
def no_file_left() -> Iterator[None]:
    """The process may open no further file."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 1, before[1]))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/", os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for handle in taken:
            os.close(handle)


@pytest.mark.usefixtures("no_file_left")
def test_a_host_without_a_file_left_is_silent_rather_than_without_the_file(host: LocalHost) -> None:
    with pytest.raises(HostSilent, match="/proc/cmdline cannot be read on local: Too many open files"):
        host.read("/proc/cmdline")
    with pytest.raises(HostSilent, match="true cannot be run on local: Too many open files"):
        host.run(["true"], timeout_s=60)


def test_a_signal_while_a_program_is_made_leaves_no_program_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Signalled(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    interrupts = Interrupts()
    with interrupts.installed(), pytest.raises(Interrupted), interrupts.allowed():
        LocalHost().run(["sleep", "3600.25"], timeout_s=60)
    (pid,) = made
    assert identify(LocalHost(), pid) is None
