"""A node whose kubelet falls silent while a run is measured: that run fails with the reason, and nothing stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.kube.conftest import STATE
from tests.integration.kube.test_pod_study import STUDY

from tare.deployments.kube.api import Cluster
from tare.store.read import open_store

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

FACTORS = """\
factors:
  place:
    sets: [sut.deployment, sut.network, workload.measure_s]
    levels:
      bare: {}
      pod: {sut.deployment: pod, sut.network: pod, workload.measure_s: 50}
baseline: {place: bare}
"""
"""The cluster takes 20 to 25 s to miss a kubelet."""


def test_a_node_lost_in_a_run_is_one_failed_run_and_nothing_stays(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY.partition("factors:\n")[0] + FACTORS)
    words = ["run", "study.yaml", "--store", "store", "--format", "json", "--quiet"]
    with subprocess.Popen(
        [sys.executable, "-m", "tare", *words], cwd=tmp_path, stdout=subprocess.PIPE, env=os.environ
    ) as run:
        try:
            wait_for(lambda: any(ready(pod) for pod in pods(cluster)), 240)
            time.sleep(5)  # into the measure phase
            (container,) = [containers(pod)[0] for pod in pods(cluster)]
            with kubelet_stopped():
                printed = run.communicate(timeout=400)[0]
                spaces = cluster.must_get("/api/v1/namespaces")["items"]
                left = [each["metadata"]["name"] for each in spaces if each["metadata"]["name"].startswith("tare-")]
        finally:
            run.kill()
    assert left == []
    records = list(open_store(tmp_path / "store").records())
    assert json.loads(printed)["good"] == 1
    assert [record.arm for record in records if record.outcome.ok] == ["bare"]
    first, *again = [record.outcome.reason or "" for record in records if record.arm == "pod"]
    assert first.startswith("the node tare-node is lost, and with it the pod tare-")
    assert "Kubelet stopped posting node status" in first
    assert all(reason.startswith("the node tare-node starts no pods: Kubelet stopped") for reason in again)
    wait_for(lambda: is_ready(cluster), 60)
    wait_for(lambda: container not in tasks(), 120)  # the node clears up once it is back


@contextmanager
def kubelet_stopped() -> Iterator[None]:
    pid = int((STATE / "pid" / "kubelet").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def pods(cluster: Cluster) -> list[dict[str, object]]:
    listed = cluster.must_get("/api/v1/pods")["items"]
    return [pod for pod in listed if pod["metadata"]["namespace"].startswith("tare-")]


def containers(pod: dict[str, object]) -> list[str]:
    status = pod["status"]
    assert isinstance(status, dict)
    every = status.get("containerStatuses") or []
    return [each["containerID"].rpartition("//")[2] for each in every if "running" in each["state"]]


def ready(pod: dict[str, object]) -> bool:
    return bool(containers(pod))


def is_ready(cluster: Cluster) -> bool:
    conditions = cluster.must_get("/api/v1/nodes/tare-node")["status"]["conditions"]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def tasks() -> str:
    argv = ["ctr", "--address", str(STATE / "containerd.sock"), "--namespace", "k8s.io", "tasks", "ls", "-q"]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


def wait_for(there: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.2)
