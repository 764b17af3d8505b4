"""A small image made of busybox, in the engine and as a tree; deployments that leave nothing behind."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient

from tare.deployments import DEPLOYMENTS, Deployment, Instance, Task
from tare.errors import TareError
from tare.images import Image, ImageConfig
from tare.sites import Output
from tare.sites.engine import LABEL, connect
from tare.sites.local import LocalHost, own_process
from tare.sites.process import to_ident
from tare.sites.sqlite_ledger import SqliteLedger

PASSWD = "root:x:0:0:root:/root:/bin/sh\ndb:x:900:901:database:/data:/bin/sh\n"
GROUP = "root:x:0:\ndb:x:901:\nextra:x:902:other,db\nempty:x:903:\n"
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
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True, timeout=30)
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
    yield Image("busybox", "sha256:test", str(rootfs), engine_id, CONFIG)
    engine.images.remove(engine_id, force=True)


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


def _tar(rootfs: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(rootfs, arcname=".")
    return packed.getvalue()


def _libraries(program: str) -> list[str]:
    """Shared libraries of a busybox that is not static."""
    shown = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, timeout=30).stdout
    return [word for line in shown.splitlines() for word in line.split() if word.startswith("/")]
