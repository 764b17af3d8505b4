"""Deployments that leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient

from tare.deployments import DEPLOYMENTS, Deployment, Instance, Task
from tare.errors import TareError
from tare.images import Image
from tare.sites import Output
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger.sqlite")


@pytest.fixture(params=["bare", "container"])
def deployment(
    request: pytest.FixtureRequest, host: LocalHost, engine: DockerClient, ledger: SqliteLedger
) -> Deployment:
    return DEPLOYMENTS[request.param](host, ledger, engine)


@pytest.fixture
def bare(host: LocalHost, engine: DockerClient, ledger: SqliteLedger) -> Deployment:
    return DEPLOYMENTS["bare"](host, ledger, engine)


@pytest.fixture
def container(host: LocalHost, engine: DockerClient, ledger: SqliteLedger) -> Deployment:
    return DEPLOYMENTS["container"](host, ledger, engine)


@pytest.fixture
def parent() -> str:
    return f"tare/test-{uuid4().hex[:8]}"


@pytest.fixture
def make_task(image: Image, parent: str, tmp_path: Path) -> Callable[..., Task]:
    def make(*argv: str, name: str = "task", **given: object) -> Task:
        output = Output(str(tmp_path / f"{name}.out"), str(tmp_path / f"{name}.err"))
        unique = f"{parent.replace('/', '-')}-{name}"
        return Task(unique, image, argv, output, parent, **given)  # type: ignore[arg-type]

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
def nothing_left(engine: DockerClient, ledger: SqliteLedger, parent: str) -> Iterator[None]:
    """After each test: no ledger entry, container, network, cgroup, mount, directory or process of its run."""
    yield
    assert left_of(engine, ledger, parent) == []


def left_of(engine: DockerClient, ledger: SqliteLedger, parent: str) -> list[str]:
    """All that is left of a run, in words."""
    name = parent.replace("/", "-")
    left = [f"ledger: {entry.kind} {entry.ident}" for entry in ledger.entries()]
    left += [
        f"container {each.name}"
        for each in engine.containers.list(all=True, ignore_removed=True)
        if name in str(each.name)
    ]
    left += [f"network {each.name}" for each in engine.networks.list() if name in str(each.name)]
    left += [f"cgroup {path}" for path in Path("/sys/fs/cgroup").rglob(Path(parent).name)]
    left += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    left += [str(path) for path in Path("/run").glob(f"tare-task.{name}*")]
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name in cmdline.read_text():
                left.append(f"process {cmdline}")
        except OSError:
            continue
    return left
