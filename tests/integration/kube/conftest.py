"""A cluster of one node, this machine, for the tests of a session; removed with all that it made."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.lacking import left_out

from tare.deployments import Deployment, Instance, Task
from tare.deployments.kube.api import Cluster, connect
from tare.deployments.kube.namespaces import name_of
from tare.deployments.registry import DEPLOYMENTS
from tare.deployments.sweep import sweep
from tare.errors import TareError
from tare.images import Image
from tare.sites import Output
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.values import NetworkKind

ROOT = Path(__file__).resolve().parents[3]
KUBE = ROOT / "scripts" / "kube.sh"
_UP_S = 600
STATE = Path("/run/tare-kube")


@pytest.fixture(scope="session")
def kubeconfig() -> Iterator[str]:
    """The path of the administrator's; a cluster that is up already is used, and left."""
    if (STATE / "admin.kubeconfig").exists():
        yield str(STATE / "admin.kubeconfig")
        return
    built = subprocess.run([KUBE, "built"], check=False, timeout=60)
    if built.returncode != 0:
        left_out("Kubernetes is not built: scripts/kube.sh build")
    up = subprocess.run([KUBE, "up"], capture_output=True, text=True, check=False, timeout=_UP_S)
    assert up.returncode == 0, up.stderr
    yield up.stdout.strip()
    subprocess.run([KUBE, "down"], check=True, timeout=_UP_S)
    assert not STATE.exists()


@pytest.fixture
def cluster(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    return connect()


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return SqliteLedger(tmp_path / "ledger")


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


@pytest.fixture
def pods(cluster: Cluster, host: LocalHost, ledger: SqliteLedger) -> Iterator[Deployment]:
    """The deployment; its namespace goes with the test."""
    yield DEPLOYMENTS["pod"](host, ledger)
    own = [entry for entry in ledger.entries() if entry.kind in {Kind.NAMESPACE, Kind.NODE_IMAGE}]
    assert sweep(own, {host.name: host}, None, ledger).failed == []
    assert ledger.entries() == ()
    assert cluster.get(f"/api/v1/namespaces/{name_of(ledger.owner)}") is None


@pytest.fixture
def make_task(image: Image, tmp_path: Path) -> Callable[..., Task]:
    def make(*argv: str, **given: object) -> Task:
        name = uuid4().hex[:12]
        output = Output(str(tmp_path / f"{name}.out"), str(tmp_path / f"{name}.err"))
        usual: dict[str, object] = {"network": NetworkKind.POD, **given}
        own = replace(image, digest=hashlib.sha256(image.rootfs.encode()).hexdigest(), owner="900:901")
        return Task(f"tare-{name}-sut", own, argv, output, f"tare/{name}", **usual)  # type: ignore[arg-type]  # whatever a test gives

    return make


Started = Callable[[Task], Instance]


@pytest.fixture
def started(pods: Deployment) -> Iterator[Started]:
    """Starts tasks that are stopped again, whatever the test does."""
    running: list[Instance] = []

    def start(task: Task) -> Instance:
        running.append(pods.start(task))
        return running[-1]

    yield start
    failures = []
    for instance in reversed(running):
        try:
            pods.stop(instance, grace_s=1)
        except TareError as error:
            failures.append(str(error))
    assert failures == []
