"""A pod of the class `guaranteed` with whole CPUs has them for itself, by kubelet's static CPU manager.

On a cluster of its own, with CPU 0 reserved for the system; before the other tests of this folder start theirs.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.kube.conftest import KUBE, STATE, Started
from tests.integration.kube.test_cluster_pod import MakeTask
from tests.integration.lacking import left_out

from tare.deployments import Deployment, Limits, PodSetting
from tare.study.values import Qos

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]

_UP_S = 600
OWN = PodSetting(qos=Qos.GUARANTEED)
SETTINGS = {"TARE_KUBE_CPU_MANAGER": "static", "TARE_KUBE_RESERVED_CPUS": "0"}


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[str]:
    """Of a cluster whose kubelet hands out CPUs, in place of the session's."""
    if STATE.exists():
        left_out("a cluster is up whose kubelet hands out no CPUs: scripts/kube.sh down")
    if subprocess.run([KUBE, "built"], check=False, timeout=60).returncode != 0:
        left_out("Kubernetes is not built: scripts/kube.sh build")
    environment = {**os.environ, **SETTINGS}
    up = subprocess.run([KUBE, "up"], env=environment, capture_output=True, text=True, check=False, timeout=_UP_S)
    assert up.returncode == 0, up.stderr
    yield up.stdout.strip()
    subprocess.run([KUBE, "down"], check=True, timeout=_UP_S)
    assert not STATE.exists()


def test_a_guaranteed_pod_has_a_cpu_that_no_other_pod_has(
    started: Started, pods: Deployment, make_task: MakeTask
) -> None:
    limits = Limits(cpus="1", memory_bytes=64 << 20)
    own = started(make_task("sleep", "1000", limits=limits, pod=OWN))
    other = started(make_task("sleep", "1000", limits=Limits(memory_bytes=64 << 20)))
    seen = pods.observe(own)
    assert seen.pod is not None
    assert (seen.pod.qos, seen.pod.cpu_manager) == ("guaranteed", "static")
    assert seen.cpu_quota is None  # a CPU of its own takes none (kubelet since 1.33)
    deadline = time.monotonic() + 60  # kubelet takes the others' CPUs away once in 10 s
    while (seen.cpus_allowed, pods.observe(other).cpus_allowed) != ("1", "0"):
        assert time.monotonic() < deadline, (seen.cpus_allowed, pods.observe(other).cpus_allowed)
        time.sleep(0.5)
    path = next(path for names, path in seen.cgroups.items() if "cpuset" in names.split(",") or not names)
    cpuset = Path("/sys/fs/cgroup/cpuset", path.strip("/"), "cpuset.cpus")
    if cpuset.exists():  # control groups v1
        assert cpuset.read_text() == "1\n"


def test_a_pod_that_asks_for_part_of_a_cpu_is_given_none_of_its_own(
    started: Started, pods: Deployment, make_task: MakeTask
) -> None:
    limits = Limits(cpu_quota=0.5, memory_bytes=64 << 20)
    seen = pods.observe(started(make_task("sleep", "1000", limits=limits, pod=OWN)))
    assert seen.pod is not None
    assert seen.pod.qos == "guaranteed"
    assert (seen.cpus_allowed, seen.cpu_quota) == ("0-1", 0.5)
