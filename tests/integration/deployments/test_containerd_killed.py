"""An engine whose containerd is killed: it answers all the time, and can start no container for a while."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest
from docker import DockerClient

from tare.errors import EnvironmentLacks
from tare.sites.engine import connect, why_away

pytestmark = pytest.mark.engine

_UP_S, _BACK_S, _DOWN_S = 60.0, 60.0, 30.0


@pytest.fixture
def own_engine() -> Iterator[DockerClient]:
    """A dockerd beside the machine's, with a containerd of its own: other tests use that one.

    It has a network namespace, too: a dockerd without a bridge removes `docker0`.
    """
    place = Path(mkdtemp(prefix="tare-engine-", dir="/run"))
    options = [f"--{name}={place}/{name}" for name in ("data-root", "exec-root", "pidfile")]
    options += ["--bridge=none", "--iptables=false", "--storage-driver=vfs", f"--host=unix://{place}/sock"]
    try:
        with (
            (place / "log").open("wb") as log,
            subprocess.Popen(["unshare", "--net", "dockerd", *options], stdout=log, stderr=log) as dockerd,
        ):
            try:
                client = _connected(f"unix://{place}/sock", dockerd)
                yield client
                client.close()
            finally:
                dockerd.terminate()
                try:
                    dockerd.wait(_DOWN_S)
                except subprocess.TimeoutExpired:
                    dockerd.kill()
    finally:
        _kill_rest(place)
        shutil.rmtree(place)


def _kill_rest(place: Path) -> None:
    """Kill the containerd of a dockerd that did not end by itself."""
    end = time.monotonic() + _DOWN_S
    while (left := _processes_of(place)) and time.monotonic() < end:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _processes_of(place: Path) -> list[int]:
    """Processes whose command line names a file in the directory."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            if f"{place}/".encode() in file.read_bytes():
                found.append(int(file.parent.name))
    return found


def _connected(address: str, dockerd: subprocess.Popen[bytes]) -> DockerClient:
    end = time.monotonic() + _UP_S
    while True:
        try:
            return connect(address)
        except EnvironmentLacks:
            if dockerd.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.1)


def _containerd_of(client: DockerClient) -> int:
    place = Path(client.info()["DockerRootDir"]).parent
    return int((place / "exec-root" / "containerd" / "containerd.pid").read_text())


def test_it_is_away_until_its_containerd_is_back(own_engine: DockerClient) -> None:
    assert why_away(own_engine) is None
    os.kill(_containerd_of(own_engine), signal.SIGKILL)
    end = time.monotonic() + _BACK_S
    while (why := why_away(own_engine)) is None and time.monotonic() < end:
        time.sleep(0.01)
    assert why == "its containerd does not answer"
    assert own_engine.ping()
    while (why := why_away(own_engine)) is not None and time.monotonic() < end:
        time.sleep(0.1)
    assert why is None
