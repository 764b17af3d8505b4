"""Data of a pod on volumes of two storage classes, as its own mounts show; a class without a volume; none."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.kube.test_pod_study import STUDY
from tests.integration.runs.command import tare
from tests.unit.record.parts import as_tree

from tare.deployments.kube.api import Cluster
from tare.store.read import open_store

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
NODE = "tare-node"
FACTORS = """\
factors:
  storage:
    sets: [sut.storage.kind, sut.storage.storage_class, sut.storage.size]
    levels:
LEVELS
baseline: {storage: bind}
"""


@pytest.fixture
def volumes(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """Classes without a provisioner: of a disk of its own, of a directory, and of no volume at all."""
    disk, image, directory = tmp_path / "disk", tmp_path / "image", tmp_path / "directory"
    disk.mkdir()
    directory.mkdir()
    subprocess.run(["truncate", "-s", "200M", image], check=True, timeout=60)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, timeout=60)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True, timeout=60)
    made: list[tuple[str, str]] = []

    def make(path: str, body: dict[str, Any]) -> None:
        tree = cluster.post(path, body)
        made.append((f"{path}/{tree['metadata']['name']}", tree["metadata"]["uid"]))

    try:
        for name in ("tare-disk", "tare-directory", "tare-empty"):
            make(CLASSES, storage_class(name))
        make(VOLUMES, volume("tare-disk", {"local": {"path": str(disk)}}))
        make(VOLUMES, volume("tare-directory", {"hostPath": {"path": str(directory)}}))
        yield tmp_path
    finally:
        for path, uid in made:
            cluster.delete(path, uid=uid)
        deadline = time.monotonic() + 60
        while any(cluster.get(path) is not None for path, _ in made):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        subprocess.run(["umount", disk], check=True, timeout=60)


def storage_class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, source: dict[str, Any]) -> dict[str, Any]:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": name,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            **source,
        },
    }


def study(**levels: str) -> str:
    lines = "\n".join(f"      {name}: {{{keys}}}" for name, keys in {"bind": "", **levels}.items())
    bare, pod = "deployment: bare\n  limits", "deployment: pod\n  network: pod\n  limits"
    placed = STUDY.partition("factors:\n")[0].replace(bare, pod)
    assert placed.count("deployment: pod") == 1
    return placed.replace("blocks: 1", "blocks: 2") + FACTORS.replace("LEVELS", lines)


def claim(name: str) -> str:
    return f"sut.storage.kind: claim, sut.storage.storage_class: {name}, sut.storage.size: 100M"


def test_a_pods_data_are_on_the_volume_of_its_class_in_every_run(
    cluster: Cluster, volumes: Path, tmp_path: Path
) -> None:
    text = study(disk=claim("tare-disk"), directory=claim("tare-directory"))
    (tmp_path / "study.yaml").write_text(text)
    printed = json.loads(tare(tmp_path, "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"))
    records = list(open_store(tmp_path / "store").records())
    assert printed["good"] == 6, [record.outcome.reason for record in records]
    disk = device_of(tmp_path / "disk")
    for record in records:
        seen = as_tree(record.parity.sut)
        (mount,) = [mount for target, mount in seen["mounts"].items() if "redis" in target or target == "/data"]
        assert mount == (f"ext4 {disk}" if record.arm == "disk" else mount)
        assert (mount == f"ext4 {disk}") is (record.arm == "disk")
        assert seen["pod"]["storage_class"] == (None if record.arm == "bind" else f"tare-{record.arm}")
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["lost+found"]
    assert list((tmp_path / "directory").iterdir()) == []
    spaces = cluster.must_get("/api/v1/namespaces")["items"]
    assert not [each["metadata"]["name"] for each in spaces if each["metadata"]["name"].startswith("tare-")]


def test_a_class_that_is_not_there_starts_nothing(volumes: Path, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(study(none=claim("no-such-class")))
    printed = tare(tmp_path, "run", "study.yaml", "--store", "store", code=3)
    assert "has no storage class `no-such-class` (it has: tare-directory, tare-disk, tare-empty)" in printed
    assert not (tmp_path / "store").exists()


def test_a_claim_that_stays_pending_is_one_failed_run(volumes: Path, tmp_path: Path) -> None:
    text = study(empty=claim("tare-empty")).replace("blocks: 2", "blocks: 1")
    (tmp_path / "study.yaml").write_text(text)
    tare(tmp_path, "run", "study.yaml", "--store", "store", "--format", "json", "--quiet", code=1)
    records = {record.arm: record for record in open_store(tmp_path / "store").records()}
    assert records["bind"].outcome.ok
    reason = records["empty"].outcome.reason or ""
    assert reason.startswith("the claim of the storage class `tare-empty` is pending: no volume is bound to it")
    assert "persistent volume" in reason


def device_of(path: Path) -> str:
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"
