"""Files of /proc and of control groups that are read while what they tell about comes and goes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tare.deployments.cgroup.hierarchy import cgroups_of
from tare.deployments.cgroup.removal import prune
from tare.deployments.mounts import place_on_host
from tare.deployments.network.path import members
from tare.deployments.observe import observe
from tare.errors import RunFailed
from tare.sites.local import LocalHost

NAME = "tare-test-vanishing"
_FORKS = """
import os
while True:
    pid = os.fork()
    if not pid:
        os._exit(0)
    print(pid, flush=True)
    os.waitpid(pid, 0)
"""
_ENDED = """
import os
while True:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    print(pid, flush=True)
"""
_GROUPS = """
import contextlib, os, sys
while True:
    with contextlib.suppress(OSError):
        os.mkdir(sys.argv[1])
    with contextlib.suppress(OSError):
        os.rmdir(sys.argv[1])
"""
_READ_S = 60.0


@contextmanager
def running(source: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-I", "-S", "-c", source, *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        try:
            yield program
        finally:
            program.kill()


def may_make_groups() -> bool:
    try:
        place = Path(cgroups_of(LocalHost()).hierarchies[0].mount)
    except Exception:  # noqa: BLE001 - whatever it lacks
        return False
    return os.geteuid() == 0 and os.access(place, os.W_OK)


def test_processes_that_end_while_their_files_are_read_have_none() -> None:
    host, seen = LocalHost(), set[str]()
    with running(_FORKS) as program:
        assert program.stdout is not None
        for _, line in zip(range(1500), program.stdout, strict=False):
            for name in ("mountinfo", "stat", "status", "cgroup", "limits", "net/tcp", "cmdline", "oom_score_adj"):
                content = host.read(f"/proc/{int(line)}/{name}")
                seen.add("none" if content is None else "empty" if not content else "some")
    assert "none" in seen


def test_processes_that_end_while_they_are_looked_at_are_said_to_have_ended() -> None:
    host = LocalHost()
    cgroups = cgroups_of(host)
    with running(_ENDED) as program:
        assert program.stdout is not None
        for _, line in zip(range(60), program.stdout, strict=False):
            pid = int(line)
            assert place_on_host(host, pid, "/no-such-target") is None
            assert members(host, pid)
            with pytest.raises(RunFailed, match="ended before it could be observed"):
                observe(host, cgroups, pid, ["/"])


@pytest.mark.skipif(not may_make_groups(), reason="needs root and control groups")
def test_a_control_group_that_goes_while_it_is_read_is_gone() -> None:
    host = LocalHost()
    cgroups = cgroups_of(host)
    place = cgroups.directories(NAME)[0]
    try:
        with running(_GROUPS, place) as program:
            seen, end = set[bytes | None](), time.monotonic() + _READ_S
            while len(seen) < 2 and time.monotonic() < end:
                seen.add(host.read(f"{place}/cgroup.procs"))
            assert seen == {None, b""}
            for _ in range(50):
                prune(host, cgroups, NAME)
            assert program.poll() is None
    finally:
        if Path(place).is_dir():
            Path(place).rmdir()
