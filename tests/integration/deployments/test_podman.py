"""Podman of root as the engine of a container: the same paths and limits as in Docker, and nothing left behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.deployments.test_network_path import dialled, free_port, wait_until_listening

from tare.deployments import Deployment, Instance, Limits, Task
from tare.deployments.network.path import Hop, observe_path
from tare.deployments.registry import DEPLOYMENTS
from tare.deployments.sweep import sweep
from tare.images import Image
from tare.images.engine_image import import_tree, remove_image
from tare.sites.engine import engine_facts
from tare.sites.engines import EngineLedger, Engines, connect_to
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
HOST, BRIDGE, SHARED = NetworkKind.HOST, NetworkKind.BRIDGE, NetworkKind.SHARED
LOOPBACK, ADDRESS = NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS
NAME = "tare/podman-test:1"


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerClient]:
    """A service of the tests' own, with images, containers and networks in directories of its own."""
    if shutil.which("podman") is None:
        pytest.fail("these tests need podman: scripts/packages.sh test")
    home = tmp_path_factory.mktemp("podman")
    own = ("--root", f"{home}/root", "--runroot", f"{home}/run", "--network-config-dir", f"{home}/net")
    address = f"unix://{home}/podman.sock"
    argv = ["podman", *own, "--cgroup-manager=cgroupfs", "--runtime=runc", "system", "service", "--time=0", address]
    named = Path("/run/netns").is_mount()
    with (home / "log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TARE_PODMAN", address)
        service = subprocess.Popen(argv, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 30
            while not (home / "podman.sock").exists():
                assert service.poll() is None, (home / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            client = connect_to("podman")
            yield client
            client.close()
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(20)
            for place in [f"{home}/root/overlay", *([] if named else ["/run/netns"])]:
                subprocess.run(["umount", place], check=False, capture_output=True, timeout=20)


@pytest.fixture(scope="module")
def podman_image(podman: DockerClient, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The very tree that bare tasks and Docker's containers have."""
    engine_id = import_tree(podman, image, tmp_path_factory.mktemp("scratch"), NAME)
    yield replace(image, engine_id=engine_id)
    remove_image(podman, NAME)


@pytest.fixture
def of_podman(podman: DockerClient, host: LocalHost, ledger: SqliteLedger) -> Deployment:
    return DEPLOYMENTS["container"](host, EngineLedger(ledger, "podman"), podman)


@pytest.mark.parametrize(
    ("server_net", "client_net", "hop"),
    [
        (HOST, HOST, Hop.LOOPBACK),
        (BRIDGE, HOST, Hop.BRIDGE),
        (BRIDGE, SHARED, Hop.LOOPBACK),
        (LOOPBACK, HOST, Hop.DNAT),
        (ADDRESS, HOST, Hop.DNAT),
    ],
)
def test_each_network_takes_the_way_it_names_from_a_bare_client(  # noqa: PLR0917 - fixtures
    of_podman: Deployment, bare: Deployment, podman_image: Image, podman: DockerClient, make_task: MakeTask,
    started: Started, host: LocalHost, ledger: SqliteLedger, server_net: NetworkKind, client_net: NetworkKind,
    hop: Hop,
) -> None:  # fmt: skip
    """Podman has no proxy of its own: a published port is the kernel's to carry, on 127.0.0.1 too."""
    port = free_port(host)
    bind = "127.0.0.1" if server_net is HOST else "0.0.0.0"
    serve = ("httpd", "-f", "-p", f"{bind}:{port}", "-h", "/tmp")
    limits = Limits(cpus="0", memory_bytes=64 << 20, cpu_quota=0.5)
    task = make_task(*serve, name="server", network=server_net, port=port, limits=limits)
    server = started(of_podman, replace(task, image=podman_image))
    wait_until_listening(host, server, port)
    place = dialled(server, client_net)
    call = f"sleep 1000 | nc {place.address} {place.port}"
    asked = replace(
        make_task("sh", "-c", call, name="client", network=client_net),
        beside=server if client_net is SHARED else None,
    )
    client = started(bare, asked)
    deadline = time.monotonic() + 20
    while (path := observe_path(host, client, server)) is None or path.hop is None:
        assert time.monotonic() < deadline, path
        time.sleep(0.05)
    assert path.hop is hop
    assert (path.client_namespace == path.server_namespace) is (hop is Hop.LOOPBACK)
    seen, beside = of_podman.observe(server), bare.observe(client)
    assert (seen.cpus_allowed, seen.cpu_quota, seen.memory_bytes) == ("0", 0.5, 64 << 20)
    assert seen.limits == beside.limits
    assert {parent(path) for path in seen.cgroups.values()} == {f"/{task.cgroup_parent}"}
    assert of_podman.exec(server, ["cat"], timeout_s=10, stdin=b"hello").stdout == b"hello"
    bare.stop(client, 1.0)
    of_podman.stop(server, 1.0)
    assert not podman.containers.list(all=True)
    assert not [each.name for each in podman.networks.list() if each.name != "bridge"]
    assert ledger.entries() == ()


def parent(path: str) -> str:
    return path.rpartition("/")[0]


def test_what_a_killed_tare_left_in_podman_is_swept(
    podman: DockerClient, podman_image: Image, host: LocalHost, ledger: SqliteLedger, tmp_path: Path
) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from tare.deployments import Task\n"
        "from tare.deployments.registry import DEPLOYMENTS\n"
        "from tare.images import Image, ImageConfig\n"
        "from tare.sites import Output\n"
        "from tare.sites.engines import EngineLedger, connect_to\n"
        "from tare.sites.local import LocalHost\n"
        "from tare.sites.sqlite_ledger import SqliteLedger\n"
        "from tare.study.values import NetworkKind\n"
        f"home, image = Path({str(tmp_path)!r}), Image('x', 'y', '/', {podman_image.engine_id!r}, ImageConfig())\n"
        "ledger = EngineLedger(SqliteLedger(home / 'ledger.sqlite'), 'podman')\n"
        "task = Task('tare-killed-sut', image, ('sleep', '1000'), Output(str(home / 'o'), str(home / 'e')),\n"
        "            'tare/killed', network=NetworkKind.BRIDGE)\n"
        "DEPLOYMENTS['container'](LocalHost(), ledger, connect_to('podman')).start(task)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [each.name for each in podman.containers.list()] == ["tare-killed-sut"]
    others = Engines(host)
    swept = sweep(ledger.abandoned(), {"local": host}, None, ledger, others)
    others.close()
    assert swept.failed == []
    assert "container tare-killed-sut@podman on local" in swept.removed
    assert not podman.containers.list(all=True)
    assert ledger.entries() == ()


def test_it_says_what_it_is(podman: DockerClient, host: LocalHost) -> None:
    facts = engine_facts(podman, host)
    assert (facts["engine"], facts["engine_rootless"], facts["engine_cgroup_driver"]) == (
        "podman",
        False,
        "cgroupfs",
    )
