"""What many tests need: a small image made of busybox, in the engine and as a tree, and the servers of runs."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.hosts.reached import KINDS, LOCAL_ALONE, Reached, over_ssh, refuse_to_go_past

from tare.images import Image, ImageConfig
from tare.run.attempt.context import RunContext
from tare.run.attempt.server import Server
from tare.sites.engine import connect
from tare.sites.local import LocalHost, own_process
from tare.sites.marks import LABEL
from tare.sites.process import to_ident
from tools import hosts
from tools.lab import TestHost

PASSWD = "root:x:0:0:root:/root:/bin/sh\ndb:x:900:901:database:/data:/bin/sh\n"
GROUP = "root:x:0:\ndb:x:901:\nextra:x:902:other,db\nempty:x:903:\n"
DIGEST = "7e57" * 16
CONFIG = ImageConfig(env=(("FROM_IMAGE", "yes"), ("OVERRIDDEN", "no")), user="db", data_dir="/data")


@pytest.fixture(scope="session")
def host() -> LocalHost:
    return LocalHost()


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.fail("these tests need busybox: scripts/packages.sh test")
    # Not below pytest's own directories, which only root may enter: a task's user must reach its root.
    rootfs = tmp_path_factory.mktemp("image") / "rootfs"
    rootfs.parent.chmod(0o755)
    for directory in ("bin", "etc", "proc", "sys", "dev", "run", "var/tmp", "data", "root"):
        (rootfs / directory).mkdir(parents=True)
    (rootfs / "tmp").mkdir()
    for scratch in ("tmp", "var/tmp"):
        (rootfs / scratch).chmod(0o1777)
    shutil.copy(busybox, rootfs / "bin" / "busybox")
    for library in _libraries(busybox):
        (rootfs / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, rootfs / library.lstrip("/"))
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True, timeout=60)
    for applet in applets.stdout.split():
        if applet != "busybox":
            (rootfs / "bin" / applet).symlink_to("busybox")
    (rootfs / "etc" / "passwd").write_text(PASSWD)
    (rootfs / "etc" / "group").write_text(GROUP)
    (rootfs / "var" / "run").symlink_to("/run")
    (rootfs / "data").chmod(0o755)
    changes = [f"LABEL {LABEL}={to_ident(own_process())}", 'ENTRYPOINT ["/bin/false"]', "ENV FROM_IMAGE=yes"]
    imported = engine.api.import_image_from_data(_tar(rootfs), changes=changes)
    engine_id = str(imported).rpartition('"status":"')[2].partition('"')[0]
    yield Image("busybox", DIGEST, str(rootfs), engine_id, CONFIG)
    engine.images.remove(engine_id, force=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of a host is played on each kind."""
    if "reached" in metafunc.fixturenames:
        here = LOCAL_ALONE & set(metafunc.fixturenames)
        metafunc.parametrize("reached", KINDS[:1] if here else KINDS, indirect=True, scope="session")


@pytest.fixture(scope="session")
def reached(
    request: pytest.FixtureRequest, engine: DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reached]:
    """The host under test."""
    if request.param == "local":
        yield Reached(LocalHost(), engine)
        return
    with over_ssh(tmp_path_factory.mktemp("far")) as far:
        yield far


@pytest.fixture(autouse=True)
def no_other_host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing under test goes past its host."""
    if "reached" in request.fixturenames:
        refuse_to_go_past(request.getfixturevalue("reached").host, monkeypatch)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """The servers that runs have started, the last one last."""
    started: list[Server] = []
    start = RunContext.start_server

    def noted(bench: RunContext, *words: Any, **more: Any) -> Server:
        started.append(start(bench, *words, **more))
        return started[-1]

    monkeypatch.setattr(RunContext, "start_server", noted)
    return started


@pytest.fixture
def pair() -> Iterator[tuple[TestHost, ...]]:
    """Two test hosts without engines, made anew: some two seconds."""
    with hosts.made(2) as both:
        yield both


@pytest.fixture
def four() -> Iterator[tuple[TestHost, ...]]:
    """Four test hosts without engines, made anew."""
    with hosts.made(4) as all_four:
        yield all_four


@pytest.fixture(scope="module")
def engine_four() -> Iterator[tuple[TestHost, ...]]:
    """Four test hosts with an engine each, which the tests of a module share."""
    with hosts.made(4, engines=True) as all_four:
        yield all_four


@pytest.fixture(scope="module")
def engine_pair() -> Iterator[tuple[TestHost, ...]]:
    """Two test hosts with an engine each, which the tests of a module share."""
    with hosts.made(2, engines=True) as both:
        yield both


def _tar(rootfs: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(rootfs, arcname=".")
    return packed.getvalue()


def _libraries(program: str) -> list[str]:
    """Shared libraries of a busybox that is not static."""
    shown = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, timeout=60).stdout
    return [word for line in shown.splitlines() for word in line.split() if word.startswith("/")]
