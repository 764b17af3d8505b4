"""What a tare killed by SIGKILL left behind is found by the ledger and removed; nothing else is touched."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from docker import DockerClient
from tests.integration.cgroups import groups_called
from tests.integration.hosts import reached as reached_by
from tests.integration.hosts.reached import Reached, cleared

from tare.deployments import Deployment, Instance, Task
from tare.deployments.sweep import orphans, sweep
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.study.values import NetworkKind

pytestmark = pytest.mark.engine

MakeTask = Callable[..., Task]
Started = Callable[[Deployment, Task], Instance]

Kill = Callable[[str, Task, float | None], None]


@pytest.fixture
def kill_a_tare(reached: Reached, tmp_path: Path) -> Kill:
    def kill(kind: str, task: Task, after_s: float | None) -> None:
        reached_by.kill_a_tare(reached, kind, task, tmp_path / "ledger.sqlite", after_s)

    return kill


def clean(ledger: Ledger, host: Host, engine: DockerClient) -> list[str]:
    swept = sweep(ledger.abandoned(), {host.name: host}, engine, ledger)
    assert swept.failed == []
    return swept.removed


@pytest.mark.parametrize(("kind", "network"), [("bare", NetworkKind.HOST), ("container", NetworkKind.BRIDGE)])
def test_a_running_task_of_a_killed_tare_is_swept(  # noqa: PLR0917 - fixtures
    kill_a_tare: Kill,
    make_task: MakeTask,
    reached: Reached,
    ledger: Ledger,
    host: Host,
    engine: DockerClient,
    kind: str,
    network: NetworkKind,
    parent: str,
) -> None:
    kill_a_tare(kind, make_task("sleep", "1000", network=network), None)
    assert groups_called(f"*_{parent.partition('_')[2]}")
    removed = cleared(reached, ledger)
    assert any(line.startswith("cgroup ") for line in removed)
    assert not groups_called(f"*_{parent.partition('_')[2]}")
    assert clean(ledger, host, engine) == []


@pytest.mark.parametrize("kind", ["bare", "container"])
@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.25])
def test_a_tare_killed_while_it_starts_a_task_leaves_nothing_after_the_sweep(  # noqa: PLR0917 - fixtures
    kill_a_tare: Kill,
    make_task: MakeTask,
    reached: Reached,
    ledger: Ledger,
    host: Host,
    engine: DockerClient,
    kind: str,
    after_s: float,
) -> None:
    network = NetworkKind.HOST if kind == "bare" else NetworkKind.PUBLISHED_LOOPBACK
    kill_a_tare(kind, make_task("sleep", "1000", network=network, port=5000), after_s)
    time.sleep(0.5)  # what had been asked of the engine may still be under way
    cleared(reached, ledger)
    late = orphans(engine, host)
    swept = sweep(late, {host.name: host}, engine, ledger)
    assert swept.failed == []


def test_the_living_are_not_swept(  # noqa: PLR0917 - fixtures
    deployment: Deployment,
    make_task: MakeTask,
    started: Started,
    ledger: Ledger,
    host: Host,
    engine: DockerClient,
) -> None:
    instance = started(deployment, make_task("sleep", "1000"))
    assert clean(ledger, host, engine) == []
    assert instance.task.name not in [entry.ident for entry in orphans(engine, host)]
    assert deployment.exec(instance, ["true"], timeout_s=30).code == 0


def test_a_mount_left_in_a_path_is_unmounted_and_what_was_mounted_is_spared(
    ledger: Ledger, host: Host, engine: DockerClient, tmp_path: Path
) -> None:
    lent, work = tmp_path / "lent", Path(ledger.home(host.name)) / "work" / tmp_path.name
    (work / "deep").mkdir(parents=True)
    lent.mkdir()
    (lent / "precious").write_text("x")
    for _ in range(2):
        host.run(["mount", "--bind", str(lent), str(work / "deep")], timeout_s=60)
    ledger.note(Kind.PATH, str(work))
    swept = sweep(ledger.entries(), {host.name: host}, engine, ledger)
    assert swept.failed == []
    assert not work.exists()
    assert (lent / "precious").read_text() == "x"
    assert str(work) not in Path("/proc/self/mountinfo").read_text()


def test_a_mount_in_use_is_detached(ledger: Ledger, host: Host, engine: DockerClient, tmp_path: Path) -> None:
    work = Path(ledger.home(host.name)) / "work" / tmp_path.name
    work.mkdir(parents=True)
    host.run(["mount", "-t", "tmpfs", "tmpfs", str(work)], timeout_s=60)
    ledger.note(Kind.PATH, str(work))
    with (work / "open").open("w"):
        swept = sweep(ledger.entries(), {host.name: host}, engine, ledger)
    assert swept.failed == []
    assert not work.exists()


def test_a_recycled_pid_is_spared(ledger: Ledger, host: Host, engine: DockerClient) -> None:
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ledger.note(Kind.PROCESS, f"{stranger.pid}:1:{boot}")
        assert clean_all(ledger, host, engine) == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_container_and_a_network_without_the_label_are_spared_and_reported(
    make_task: MakeTask, ledger: Ledger, host: Host, engine: DockerClient
) -> None:
    task = make_task("sleep", "1000")
    container = engine.containers.create(task.image.engine_id or "", entrypoint=["sleep"], name=task.name)
    network = engine.networks.create(f"{task.name}-net")
    try:
        ledger.note(Kind.CONTAINER, task.name)
        ledger.note(Kind.NETWORK, str(network.name))
        swept = sweep(ledger.entries(), {host.name: host}, engine, ledger)
        assert swept.removed == []
        assert len(swept.failed) == 2
        assert all("no label of tare's" in line for line in swept.failed)
        container.reload()
        network.reload()
    finally:
        container.remove(force=True)
        network.remove()
        ledger.forget(Kind.CONTAINER, task.name)
        ledger.forget(Kind.NETWORK, str(network.name))


def test_one_failure_does_not_keep_the_next_from_its_turn(
    ledger: Ledger, host: Host, engine: DockerClient, tmp_path: Path
) -> None:
    work = Path(ledger.home(host.name)) / "work" / tmp_path.name
    work.mkdir(parents=True)
    ledger.note(Kind.PATH, str(work))
    ledger.note(Kind.CGROUP, "../escape")
    ledger.note(Kind.PATH, "/usr")
    swept = sweep(ledger.entries(), {host.name: host}, engine, ledger)
    assert len(swept.failed) == 2
    assert not work.exists()
    assert Path("/usr").is_dir()
    for kind, ident in ((Kind.CGROUP, "../escape"), (Kind.PATH, "/usr")):
        ledger.forget(kind, ident)


def clean_all(ledger: Ledger, host: Host, engine: DockerClient) -> list[str]:
    swept = sweep(ledger.entries(), {host.name: host}, engine, ledger)
    assert swept.failed == []
    return swept.removed
