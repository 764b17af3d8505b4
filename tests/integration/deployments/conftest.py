"""Deployments that leave nothing behind, on each kind of host."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient
from tests.integration.cgroups import groups_called
from tests.integration.deployments.machines import MakeMachine, free_port
from tests.integration.hosts.reached import Reached, noted

from tare.deployments import CONTAINERD, Bind, Deployment, Instance, Limits, MachineSetting, Task
from tare.deployments.registry import DEPLOYMENTS
from tare.deployments.sweep import sweep
from tare.errors import TareError
from tare.images import Image
from tare.sites import Host, Output
from tare.sites.layout import ENV, make_home
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import group_of
from tare.study.values import NetworkKind

_ENDING_S = 60.0
"""In which what a killed tare had begun may still come to its end, on a busy machine."""


@pytest.fixture(scope="session")
def host(reached: Reached) -> Host:
    return reached.host


@pytest.fixture
def ledger(reached: Reached, tmp_path: Path) -> Ledger:
    return reached.ledger(tmp_path)


@pytest.fixture(params=["bare", "container", CONTAINERD])
def deployment(request: pytest.FixtureRequest, reached: Reached, ledger: Ledger) -> Iterator[Deployment]:
    if request.param == CONTAINERD and reached.spec is not None:
        pytest.skip("containerd makes containers on the machine that tare runs on")
    yield DEPLOYMENTS[request.param](reached.host, ledger, reached.engine)
    if request.param == CONTAINERD:
        forget_images(reached.host, ledger)


@pytest.fixture
def containerd(host: Host, engine: DockerClient, ledger: Ledger) -> Iterator[Deployment]:
    yield DEPLOYMENTS[CONTAINERD](host, ledger, engine)
    forget_images(host, ledger)


@pytest.fixture
def clean_containerd(host: Host, ledger: Ledger) -> Iterator[None]:
    """For tests of a tare of its own, on this machine alone."""
    yield
    forget_images(host, ledger)


def forget_images(host: Host, ledger: Ledger) -> None:
    """Take what tests brought into the engine's containerd out of it."""
    kept = [entry for entry in ledger.entries() if entry.kind is Kind.NODE_IMAGE]
    assert sweep(kept, {host.name: host}, None, ledger).failed == []


@pytest.fixture
def bare(reached: Reached, ledger: Ledger) -> Deployment:
    return DEPLOYMENTS["bare"](reached.host, ledger, reached.engine)


@pytest.fixture
def container(reached: Reached, ledger: Ledger) -> Deployment:
    return DEPLOYMENTS["container"](reached.host, ledger, reached.engine)


@pytest.fixture
def parent(reached: Reached, ledger: Ledger) -> str:
    return group_of(f"test-{uuid4().hex[:8]}", ledger.owner_on(reached.host.name))


@pytest.fixture
def make_task(image: Image, parent: str, tmp_path: Path) -> Callable[..., Task]:
    def make(*argv: str, name: str = "task", **given: object) -> Task:
        output = Output(str(tmp_path / f"{name}.out"), str(tmp_path / f"{name}.err"))
        unique = f"tare-{parent.rpartition('_')[2]}-{name}"
        return Task(unique, image, argv, output, parent, **given)  # type: ignore[arg-type]  # whatever a test gives

    return make


Started = Callable[[Deployment, Task], Instance]


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts tasks that are stopped again, whatever the test does, the last one first."""
    running: list[tuple[Deployment, Instance]] = []

    def start(deployment: Deployment, task: Task) -> Instance:
        instance = deployment.start(task)
        running.append((deployment, instance))
        return instance

    yield start
    failures = []
    for deployment, instance in reversed(running):
        try:
            deployment.stop(instance, grace_s=1)
        except TareError as error:
            failures.append(str(error))
    assert failures == []


@pytest.fixture(autouse=True)
def nothing_left(engine: DockerClient, ledger: Ledger, parent: str) -> Iterator[None]:
    """After each test: no ledger entry, container, network, cgroup, mount, directory or process of its run."""
    yield
    deadline = time.monotonic() + _ENDING_S
    while (left := left_of(engine, ledger, parent)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def left_of(engine: DockerClient, ledger: Ledger, parent: str) -> list[str]:
    """All that is left of a run, in words."""
    name = parent.replace("/", "-")
    left = [f"ledger: {what}" for what in noted(ledger)]
    left += [
        f"container {each.name}"
        for each in engine.containers.list(all=True, ignore_removed=True)
        if name in str(each.name)
    ]
    left += [f"network {each.name}" for each in engine.networks.list() if name in str(each.name)]
    left += [f"cgroup {path}" for path in groups_called(f"*_{parent.partition('_')[2]}")]
    left += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    left += [str(path) for path in Path("/run").glob(f"tare-task.{name}*")]
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name in cmdline.read_text():
                left.append(f"process {cmdline}")
        except OSError:
            continue
    return left


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where kernel and verdict are kept, shared by all tests of a session."""
    home = tmp_path_factory.mktemp("home")
    make_home(home)
    (home / "machines").mkdir()
    yield home
    shutil.rmtree(home)


@pytest.fixture
def vm(
    host: Host, engine: DockerClient, ledger: Ledger, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    monkeypatch.setenv(ENV, os.environ.get(ENV, str(machines)))
    return DEPLOYMENTS["vm"](host, ledger, engine)


@pytest.fixture
def boxed(
    host: Host, engine: DockerClient, ledger: Ledger, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """A container in a machine."""
    monkeypatch.setenv(ENV, os.environ.get(ENV, str(machines)))
    return DEPLOYMENTS["vm-container"](host, ledger, engine)


@pytest.fixture
def make(make_task: Callable[..., Task], tmp_path: Path) -> MakeMachine:
    """A task in a small machine, with a directory of data that is the image's user's."""

    def make(*argv: str, **given: object) -> Task:
        data = tmp_path / "work" / "storage" / "data"  # in a home, as the ledger lies beside it
        data.mkdir(parents=True, exist_ok=True)
        (data / "seed").write_text("sown")
        os.chown(data, 900, 901)
        machine = MachineSetting(disk_bytes=64 << 20)
        usual = {
            "network": NetworkKind.USER,
            "port": free_port(),
            "binds": (Bind(str(data), "/data"),),
            "machine": machine,
            "limits": Limits(cpus="0", memory_bytes=96 << 20),
        }
        task = make_task(*argv, **{**usual, **given})
        return replace(task, argv=tuple(word.replace("{port}", str(task.port)) for word in task.argv))

    return make
