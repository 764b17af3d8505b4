"""Idle containers, to measure what watching them costs."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from io import BytesIO

CONTAINERS = 10
IMAGE = "tare-bench-probe:idle"
DOCKER_TIMEOUT_S = 60.0


def idle_image() -> bytes:
    """A file system with nothing but `sleep` and the libraries that it needs."""
    sleep = shutil.which("sleep") or "/bin/sleep"
    libraries = subprocess.run(["ldd", sleep], check=True, capture_output=True, text=True, timeout=10).stdout
    files = [sleep] + [word for word in libraries.split() if word.startswith("/")]
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in files:
            tar.add(os.path.realpath(name), arcname=name.lstrip("/"))
    return packed.getvalue()


def docker(*arguments: str, stdin: bytes | None = None) -> str:
    """Call the engine's client."""
    done = subprocess.run(
        ["docker", *arguments], input=stdin, check=True, capture_output=True, timeout=DOCKER_TIMEOUT_S
    )
    return done.stdout.decode().strip()


@contextlib.contextmanager
def containers() -> Iterator[list[str]]:
    """Ids of ten idle containers, which go afterwards with their image."""
    docker("import", "-", IMAGE, stdin=idle_image())
    sleep = shutil.which("sleep") or "/bin/sleep"
    started: list[str] = []
    try:
        while len(started) < CONTAINERS:
            started.append(docker("run", "--detach", "--network", "none", IMAGE, sleep, "86400"))
        yield started
    finally:
        for name in started:
            docker("rm", "--force", name)
        docker("rmi", IMAGE)


def group_of(container: str) -> str:
    """The control group of a container, as tare-probe wants it named."""
    pid = docker("inspect", "--format", "{{.State.Pid}}", container)
    return f"c{container[:6]}=pid:{pid}"
