"""The two scripts that run on a host: what of them can be tested without root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tare.deployments.bare.bare import LAUNCHER
from tare.deployments.bare.launcher import LaunchError, describe, join, resolve, table
from tare.deployments.cgroup.hierarchy import CgroupKind, Cgroups, Hierarchy
from tare.deployments.cgroup.removal import clear, prune, send, warden
from tare.deployments.container.engine_exec import split_frames
from tare.errors import RunFailed
from tare.sites.local import LocalHost
from tare.sites.process import identify


def one_hierarchy(mount: Path) -> Cgroups:
    return Cgroups(CgroupKind.V2, (Hierarchy(str(mount), (), True),))


def ticks(pid: int) -> str:
    process = identify(LocalHost(), pid)
    assert process is not None
    return str(process.started_ticks)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/plain/file", "plain/file"),
        ("/absolute/x", "target/x"),
        ("/relative/x", "target/x"),
        ("/escape/etc/passwd", "etc/passwd"),
        ("/../../etc", "etc"),
        ("/a/./b/../c", "a/c"),
        ("/chain/x", "target/x"),
        ("/not/there/yet", "not/there/yet"),
    ],
)
def test_links_are_followed_inside_the_root_and_never_out_of_it(tmp_path: Path, path: str, expected: str) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "absolute").symlink_to("/target")
    (tmp_path / "relative").symlink_to("target")
    (tmp_path / "chain").symlink_to("absolute")
    (tmp_path / "escape").symlink_to("../../../../..")
    assert resolve(tmp_path, path) == tmp_path / expected


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(LaunchError, match="too many links"):
        resolve(tmp_path, "/a")


def test_errors_become_one_line() -> None:
    assert describe(LaunchError("cannot\nmount")) == "cannot mount"
    assert describe(KeyError("argv")) == "KeyError: 'argv'"
    assert describe(FileNotFoundError(2, "No such file", "/x")) == "[Errno 2] No such file: '/x'"


_NO_IMPORTS = """
import builtins
for name in ("setgroups", "setgid", "setuid"):
    setattr(os, name, lambda *_: None)
Path.write_text = lambda *_: None  # /proc/self/oom_score_adj
def refused(name, *_):
    raise ImportError(f"{name} is not in the new root")
builtins.__import__ = refused
try:
    become(json.loads(sys.argv[1]))
except LaunchError as error:
    sys.stdout.write(describe(error))
"""
"""What follows the definitions of the launcher where it has entered a root without Python's modules."""


@pytest.mark.parametrize(
    ("argv", "printed"),
    [
        (["printf", "%s", "found in PATH"], "found in PATH"),
        (["/usr/bin/printf", "%s", "by its path"], "by its path"),
        (["nowhere"], "cannot execute nowhere: No such file or directory"),
        (["shut"], "cannot execute shut: Permission denied"),
    ],
)
def test_nothing_is_imported_once_the_launcher_has_entered_the_image(
    argv: list[str], printed: str, tmp_path: Path
) -> None:
    """Python 3.14 imports `warnings` within os.execvpe, which made bare tasks fail to start."""
    (tmp_path / "shut").write_text("")
    spec: dict[str, object] = {
        "argv": argv,
        "env": {"PATH": f"/usr/bin:{tmp_path}:/nowhere"},
        "user": "",
        "workdir": "/",
    }
    spec |= {"own_output": False, "rlimits": {"nofile": [64, 64]}}
    source = LAUNCHER.read_text().partition('if __name__ == "__main__"')[0] + _NO_IMPORTS
    command = [sys.executable, "-I", "-S", "-c", source, json.dumps(spec)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (printed, "")


def test_a_task_s_process_is_moved_by_the_command_that_it_is_given(tmp_path: Path) -> None:
    moved = tmp_path / "cgroup.procs"
    join({"mover": ["sh", "-c", f'echo "$1" >{moved}', "sh"], "cgroup_procs": [], "network_of": None})
    assert moved.read_text() == f"{os.getpid()}\n"
    refused = {"mover": ["sh", "-c", "exit 3"], "stderr": "/t.stderr", "cgroup_procs": [], "network_of": None}
    with pytest.raises(LaunchError, match=r"sh ended with 3: its reason is in /t\.stderr"):
        join(refused)


def test_a_signal_reaches_the_process_that_is_meant_or_none(tmp_path: Path) -> None:
    received = tmp_path / "received"
    program = f"trap 'echo usr1 >>{received}' USR1; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(["sh", "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        same = identify(LocalHost(), process.pid)
        assert same is not None
        send(LocalHost(), replace(same, started_ticks=same.started_ticks + 1), "KILL", group=True)
        assert process.poll() is None
        send(LocalHost(), same, "USR1")
        while not received.exists():
            time.sleep(0.01)
        send(LocalHost(), same, "KILL", group=True)
        assert process.wait() == -9
        send(LocalHost(), same, "KILL")  # it has ended: nothing to do
    finally:
        process.kill()
        process.communicate()


def test_wait_returns_the_status_that_was_written_down(tmp_path: Path) -> None:
    status = tmp_path / "status"
    program = f"sleep 0.2; echo -n 7 >{status}"
    process = subprocess.Popen(["sh", "-c", program])
    try:
        assert warden(LocalHost(), "wait", str(process.pid), ticks(process.pid), str(status)) == "7"
    finally:
        process.wait()


def test_wait_for_an_end_that_nobody_wrote_down_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailed, match="unknown exit code"):
        warden(LocalHost(), "wait", "999999999", "1", str(tmp_path / "status"))


def test_end_asks_then_tells() -> None:
    deaf = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
    )
    assert deaf.stdout is not None
    deaf.stdout.readline()
    began = time.monotonic()
    warden(LocalHost(), "end", str(deaf.pid), ticks(deaf.pid), "0.3")
    assert deaf.wait(60) == -9
    assert time.monotonic() - began >= 0.3
    deaf.stdout.close()
    polite = subprocess.Popen(["sleep", "600"])
    warden(LocalHost(), "end", str(polite.pid), ticks(polite.pid), "20")
    assert polite.wait(60) == -15


def test_end_spares_a_process_that_only_has_the_pid() -> None:
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        warden(LocalHost(), "end", str(stranger.pid), str(int(ticks(stranger.pid)) - 1), "0.1")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_cgroups_are_removed_from_below_and_their_parents_if_empty(tmp_path: Path) -> None:
    for mount in ("a", "b"):
        (tmp_path / mount / "tare" / "run" / "task" / "inner").mkdir(parents=True)
    (tmp_path / "b" / "tare" / "other").mkdir()
    mounts = [str(tmp_path / mount) for mount in ("a", "b")]
    warden(LocalHost(), "clear", "tare/run/task", *mounts)
    assert not (tmp_path / "a" / "tare").exists()
    assert [each.name for each in (tmp_path / "b" / "tare").iterdir()] == ["other"]
    assert (tmp_path / "a").is_dir()


@pytest.mark.parametrize("path", ["", "/", "/tare", "../x", "tare/../.."])
def test_nothing_but_a_cgroup_below_the_root_is_ever_cleared(tmp_path: Path, path: str) -> None:
    (tmp_path / "keep").mkdir()
    with pytest.raises(RunFailed, match="is not a cgroup"):
        warden(LocalHost(), "clear", path, str(tmp_path))
    for way in (clear, prune):
        with pytest.raises(RunFailed, match="is not a cgroup"):
            way(LocalHost(), one_hierarchy(tmp_path), path)
    assert (tmp_path / "keep").is_dir()


def frame(stream: int, content: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(content).to_bytes(4, "big") + content


def test_frames_are_sorted_by_stream() -> None:
    raw = frame(1, b"out ") + frame(2, b"err") + frame(1, b"") + frame(1, b"more")
    assert split_frames(raw) == (b"out more", b"err")
    assert split_frames(b"") == (b"", b"")


@pytest.mark.parametrize("cut", [3, 10])
def test_an_answer_that_ends_in_a_frame_is_a_failure_and_not_a_short_output(cut: int) -> None:
    with pytest.raises(RunFailed, match="in the middle of a frame"):
        split_frames(frame(1, b"whole")[:cut])


def launched(words: bytes) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-I", "-S", str(LAUNCHER), "exec"]
    return subprocess.run(argv, input=words, capture_output=True, check=False, timeout=60)


def test_a_specification_on_standard_input_ends_where_it_says() -> None:
    spec = json.dumps({"cgroup_procs": ["/nowhere/at/all"], "network_of": None}).encode()
    done = launched(b"%010d" % len(spec) + spec + b"the program's own")
    assert (done.returncode, done.stderr) == (125, b"[Errno 2] No such file or directory: '/nowhere/at/all'\n")


def test_a_specification_that_is_cut_short_is_told() -> None:
    done = launched(b"0000000009{}")
    assert (done.returncode, done.stderr) == (125, b"the specification is cut short: 2 of 9 bytes\n")


def test_accounts_are_read_from_files_and_a_fifo_in_their_place_is_not_waited_for(tmp_path: Path) -> None:
    """Found by attack: an image's /etc/passwd was a FIFO, and its start waited for 30 s."""
    (tmp_path / "passwd").write_bytes(b"root:x:0:0:\xff:/root:/bin/sh\nshort:x\n")
    assert [row[0] for row in table(str(tmp_path / "passwd"), 6)] == ["root"]
    assert table(str(tmp_path / "none"), 6) == []
    os.mkfifo(tmp_path / "fifo")
    program = "import sys; from tare.deployments.bare.launcher import table; print(table(sys.argv[1], 6))"
    argv = [sys.executable, "-c", program, str(tmp_path / "fifo")]
    assert subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout == b"[]\n"
    assert table("/dev/zero", 6) == []
