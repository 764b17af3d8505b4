"""Podman of root as the engine of a container: the same paths and limits as in Docker, and nothing left behind."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.deployments.test_network_path import dialled, free_port, wait_until_listening
from tests.integration.hosts.reached import Reached, cleared, kill_a_tare, noted

from tare.deployments import Deployment, Instance, Limits, Task
from tare.deployments.network.path import observe_path
from tare.deployments.registry import DEPLOYMENTS
from tare.images import Image
from tare.images.engine_image import import_tree, remove_image
from tare.record.network_path import Hop
from tare.sites import Host
from tare.sites.engine import connect, engine_facts
from tare.sites.engines import EngineLedger, connect_to
from tare.sites.ledger import Ledger
from tare.sites.sqlite_ledger import SqliteLedger
from tare.sites.ssh.engine import ForwardedEngine
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]
HOST, BRIDGE, SHARED = NetworkKind.HOST, NetworkKind.BRIDGE, NetworkKind.SHARED
LOOPBACK, ADDRESS = NetworkKind.PUBLISHED_LOOPBACK, NetworkKind.PUBLISHED_ADDRESS
NAME = "tare/podman-test:1"


@pytest.fixture(scope="module")
def of_service(reached: Reached, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """Podman as the engine of the host: a service of the tests' own, and all that it keeps in its own directories.

    Here it is an engine that arms name, over SSH the host's only one, whose socket sites.yaml gives.
    """
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
            deadline = time.monotonic() + 60
            while not (home / "podman.sock").exists():
                assert service.poll() is None, (home / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)
            with ExitStack() as stack:
                if reached.spec is None:
                    client = stack.enter_context(closing(connect_to("podman")))
                    yield replace(reached, engine=client)
                else:
                    spec = reached.spec.model_copy(update={"engine": f"{home}/podman.sock"})
                    here = SqliteLedger(home / "here.sqlite")
                    forwarded = stack.enter_context(closing(ForwardedEngine(spec, here)))
                    client = stack.enter_context(closing(connect(forwarded.url, timeout_s=60)))
                    yield replace(reached, engine=client, spec=spec)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(60)
            for place in [f"{home}/root/overlay", *([] if named else ["/run/netns"])]:
                subprocess.run(["umount", place], check=False, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def podman(of_service: Reached) -> DockerClient:
    return of_service.engine


@pytest.fixture(scope="module")
def podman_image(podman: DockerClient, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The very tree that bare tasks and Docker's containers have."""
    engine_id = import_tree(podman, image, tmp_path_factory.mktemp("scratch"), NAME)
    yield replace(image, engine_id=engine_id)
    remove_image(podman, NAME)


def named_in(ledger: Ledger, reached: Reached) -> Ledger:
    """The ledger in which containers are those of an engine that an arm names."""
    return EngineLedger(ledger, "podman") if reached.spec is None else ledger


@pytest.fixture
def of_podman(of_service: Reached, podman: DockerClient, host: Host, ledger: Ledger) -> Deployment:
    return DEPLOYMENTS["container"](host, named_in(ledger, of_service), podman)


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
    started: Started, host: Host, ledger: Ledger, server_net: NetworkKind, client_net: NetworkKind,
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
    deadline = time.monotonic() + 60
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
    assert noted(ledger) == []


def parent(path: str) -> str:
    return path.rpartition("/")[0]


def test_what_a_killed_tare_left_in_podman_is_swept(
    of_service: Reached, podman_image: Image, make_task: MakeTask, ledger: Ledger, tmp_path: Path
) -> None:
    podman = of_service.engine
    task = replace(make_task("sleep", "1000", network=NetworkKind.BRIDGE), image=podman_image)
    kill_a_tare(of_service, "container", task, tmp_path / "ledger.sqlite", None, engine="podman")
    assert [each.name for each in podman.containers.list()] == [task.name]
    removed = cleared(of_service, ledger, engine="podman")
    at = "" if of_service.spec else "@podman on local"
    assert f"container {task.name}{at}" in removed
    assert not podman.containers.list(all=True)
    assert noted(ledger) == []


def test_it_says_what_it_is(podman: DockerClient, host: Host) -> None:
    facts = engine_facts(podman, host)
    assert (facts.engine, facts.engine_rootless, facts.engine_cgroup_driver) == (
        "podman",
        False,
        "cgroupfs",
    )
